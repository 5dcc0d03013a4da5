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

/// Columns from the left edge to the middle.
const MIDDLE: usize = 18;

/// VERSION chooses among pictures in other servers; here there is one.
fn lolwut(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.args.len() > 2 && ctx.is_word(1, "version") {
        let number = ctx.integer(2)?;
        i32::try_from(number).map_err(|_| error::NOT_INT32)?;
    }
    ctx.reply.verbatim("txt", picture().as_bytes());
    Ok(())
}

fn picture() -> String {
    let mut text = String::new();
    for (row, half) in PROFILE.into_iter().enumerate() {
        // Light falls from the left: the glaze is thin there and dark on the right; a band runs around the shoulder.
        let glaze: String = (0..2 * half)
            .map(|column| match (row, column * 4 / (2 * half)) {
                (6, _) => '~',
                (_, 0) => '.',
                (_, 1) => ':',
                (_, 2) => '+',
                _ => '#',
            })
            .collect();
        text.push_str(&format!("{}({glaze})\n", " ".repeat(MIDDLE - half)));
    }
    text.push_str(&format!("\nWhat is put into an onggi keeps. Onggi ver. {VERSION}\n"));
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_jar_is_symmetric() {
        for line in super::picture().lines().filter(|line| line.contains('(')) {
            let left = line.find('(').unwrap() + 1;
            assert_eq!(left + line.len() - 1, 2 * super::MIDDLE + 2, "{line}");
        }
    }
}
