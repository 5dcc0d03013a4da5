//! LOLWUT: an onggi, the jar of Korean kitchens in which things keep, and the version.

use crate::about::VERSION;
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&LOLWUT];

pub(crate) static LOLWUT: CommandSpec = CommandSpec {
    name: "lolwut",
    arity: -1,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Draws a picture and tells the version.",
        since: "5.0.0",
        group: "server",
        complexity: "",
        arguments: &[Argument::integer("version").after("VERSION").optional()],
        ..Docs::NONE
    },
    run: Run::Call(lolwut),
};

/// Half widths of the jar's rows, from its lid to its foot.
const PROFILE: [usize; 14] = [3, 7, 6, 8, 10, 12, 13, 13, 13, 12, 11, 10, 9, 8];

/// The row of the band around the shoulder.
const BAND: usize = 6;

/// Columns that the profile is drawn in, and rows: the size when none is asked for.
const COLUMNS: usize = 36;
const ROWS: usize = PROFILE.len();

/// The smallest and the largest picture: columns, rows.
const SMALLEST: (usize, usize) = (12, 7);
const LARGEST: (usize, usize) = (160, 80);

/// The version of Valkey's picture whose arguments are checked most strictly.
const PARAMETERS_VERSION: u32 = 9;

/// There is one picture, whatever VERSION says, in the size asked for. Arguments are those of Valkey's pictures: for
/// version 9, the latest, columns and rows, and two more numbers of a fractal that is not drawn here.
fn lolwut(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut version, mut first) = (PARAMETERS_VERSION, 1);
    if ctx.args.len() > 2 && ctx.is_word(1, "version") {
        // Valkey cuts the number off, and takes every number that begins with a 9 for the latest version.
        version = ctx.integer(2)? as u32;
        if version.to_string().starts_with('9') {
            version = PARAMETERS_VERSION;
        }
        first = 3;
    }
    let count = ctx.args.len() - first;
    let numbers = match version {
        5 => count.min(3),
        6 => count.min(2),
        PARAMETERS_VERSION if !matches!(count, 0 | 2 | 4) => {
            return Err(Stop::error("ERR Syntax error. Use: LOLWUT [columns rows] [real imaginary]"));
        }
        PARAMETERS_VERSION => count.min(2),
        _ => 0,
    };
    let numbers = (first..first + numbers).map(|index| ctx.integer(index)).collect::<Result<Vec<_>, _>>()?;
    if version == PARAMETERS_VERSION && count == 4 {
        for index in first + 2..first + 4 {
            let number = std::str::from_utf8(&ctx.args[index]).ok().and_then(|text| text.parse::<f64>().ok());
            number.filter(|number| !number.is_nan()).ok_or(error::NOT_FLOAT)?;
        }
    }
    let size = |number: Option<&i64>, default: usize, least: usize, most: usize| {
        number.map_or(default, |number| usize::try_from(*number).unwrap_or(0).clamp(least, most))
    };
    let columns = size(numbers.first(), COLUMNS, SMALLEST.0, LARGEST.0);
    let rows = size(numbers.get(1), ROWS, SMALLEST.1, LARGEST.1);
    ctx.reply.verbatim("txt", picture(columns, rows).as_bytes());
    Ok(())
}

fn picture(columns: usize, rows: usize) -> String {
    let mut text = String::new();
    for row in (0..rows).map(|row| row * ROWS / rows) {
        let half = PROFILE[row] * columns / COLUMNS;
        // Light falls from the left: the glaze is thin there and dark on the right.
        let glaze: String = (0..2 * half)
            .map(|column| match (row, column * 4 / (2 * half)) {
                (BAND, _) => '~',
                (_, 0) => '.',
                (_, 1) => ':',
                (_, 2) => '+',
                _ => '#',
            })
            .collect();
        text.push_str(&format!("{}({glaze})\n", " ".repeat(columns / 2 - half)));
    }
    text.push_str(&format!("\nWhat is put into an onggi keeps. Onggi ver. {VERSION}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jar_is_symmetric_in_every_size() {
        for (columns, rows) in [(COLUMNS, ROWS), SMALLEST, LARGEST, (37, 20)] {
            let picture = picture(columns, rows);
            let jar: Vec<&str> = picture.lines().filter(|line| line.contains('(')).collect();
            assert_eq!(jar.len(), rows);
            for line in jar {
                let left = line.find('(').unwrap() + 1;
                assert_eq!(left + line.len() - 1, 2 * (columns / 2) + 2, "{line}");
            }
        }
    }
}
