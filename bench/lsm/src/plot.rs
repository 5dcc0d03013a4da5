//! Space over the update phase as a picture (SVG), one line per engine.

use std::fmt::Write;

use crate::report::Outcome;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Room for the figures of the axes, and for the names on the right.
const LEFT: f64 = 40.0;
const BELOW: f64 = 30.0;
const RIGHT: f64 = 150.0;
/// Distinguishable in print, too.
const COLOURS: [&str; 8] = ["#0b6e99", "#d1495b", "#66a182", "#edae49", "#5c4b8a", "#8d6b48", "#2e4057", "#b0b0b0"];

/// Bytes of files per live byte, from the first update to the last of each engine.
pub fn space(outcomes: &[Outcome]) -> String {
    let mut svg = String::new();
    // Writing into a string cannot fail.
    let _ = write_space(outcomes, &mut svg);
    svg
}

fn write_space(outcomes: &[Outcome], svg: &mut String) -> std::fmt::Result {
    let top =
        outcomes.iter().flat_map(|outcome| &outcome.writing.space).fold(1.0, |top: f64, one| top.max(*one)).ceil();
    let x = |share: f64| LEFT + share * (WIDTH - LEFT - RIGHT);
    let y = |space: f64| (HEIGHT - BELOW) * (1.0 - space / top) + 5.0;
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">"
    )?;
    writeln!(svg, r##"<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>"##)?;
    // At most a dozen lines across.
    let step = (top / 12.0).ceil() as usize;
    for space in (0..=top as usize).step_by(step) {
        let at = y(space as f64);
        writeln!(svg, r##"<path d="M{LEFT:.0} {at:.1}H{:.1}" stroke="#ddd"/>"##, x(1.0))?;
        writeln!(svg, r#"<text x="{:.0}" y="{:.1}" text-anchor="end">{space}</text>"#, LEFT - 6.0, at + 4.0)?;
    }
    writeln!(
        svg,
        r#"<text x="{LEFT}" y="{:.0}">share of the updates: bytes of files per live byte</text>"#,
        HEIGHT - 8.0
    )?;
    for (index, outcome) in outcomes.iter().enumerate() {
        let (colour, samples) = (COLOURS[index % COLOURS.len()], &outcome.writing.space);
        let last = (samples.len().max(2) - 1) as f64;
        write!(svg, r#"<polyline fill="none" stroke="{colour}" stroke-width="1.5" points=""#)?;
        for (at, space) in samples.iter().enumerate() {
            write!(svg, "{}{:.1},{:.1}", if at > 0 { " " } else { "" }, x(at as f64 / last), y(*space))?;
        }
        writeln!(svg, r#""/>"#)?;
        let (x, y) = (x(1.0) + 10.0, 20.0 + 18.0 * index as f64);
        writeln!(svg, r#"<text x="{x:.0}" y="{y:.0}" fill="{colour}">{}</text>"#, outcome.engine)?;
    }
    writeln!(svg, "</svg>")
}
