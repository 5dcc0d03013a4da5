//! The two charts: bars with intervals, and latency curves. Each is an inline SVG that takes its colours from the
//! page's style sheet by class, so that it follows light and dark mode.

use super::figure;
use super::markup::escape;
use crate::results::{Cell, CurvePoint, ResultRow, Section};

const WIDTH: f64 = 720.0;
const BAR_HEIGHT: f64 = 15.0;
const BAR_PITCH: f64 = 25.0;
/// The left end of bars and their greatest length; the rest is for the figures.
const BAR_LEFT: f64 = 92.0;
const BAR_WIDTH: f64 = 440.0;
/// Room for a figure next to a bar.
const FIGURE_WIDTH: f64 = 60.0;

/// The required end of the subject's bar.
#[derive(Clone, Debug)]
pub struct Bound<'a> {
    /// The server whose bar it is.
    pub subject: &'a str,
    /// The figure.
    pub at: f64,
}

/// A bar for each server, its 90 % interval as a whisker, and the subject's bound as a line across its bar. `scale` is
/// the figure at full length; `hue` returns the colour of a server.
pub fn bars(row: &ResultRow, scale: f64, bound: Option<&Bound<'_>>, hue: &dyn Fn(&str) -> String) -> String {
    let height = BAR_PITCH * row.cells.len() as f64 + 4.0;
    let at = |value: f64| BAR_LEFT + BAR_WIDTH * (value / scale).clamp(0.0, 1.0);
    let mut svg = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(&row.title)
    );
    for (number, cell) in row.cells.iter().enumerate() {
        let top = 4.0 + BAR_PITCH * number as f64;
        let (middle, value) = (top + BAR_HEIGHT / 2.0, cell.value);
        let baseline = middle + 4.5;
        svg.push_str(&format!(
            "<text class=\"name\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>\
             <rect class=\"bar {}\" x=\"{BAR_LEFT}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2.5\">\
             <title>{}</title></rect>",
            BAR_LEFT - 10.0,
            escape(&cell.server),
            hue(&cell.server),
            (at(value.median) - BAR_LEFT).max(1.5),
            escape(&samples_text(cell)),
        ));
        let mut end = at(value.median);
        if value.low < value.high {
            let (low, high) = (at(value.low), at(value.high));
            end = end.max(high);
            svg.push_str(&format!(
                "<path class=\"whisker\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v7M{high:.1} {:.1}v7\"/>",
                middle - 3.5,
                middle - 3.5
            ));
        }
        if let Some(bound) = bound.filter(|bound| bound.subject == cell.server && bound.at <= scale) {
            let x = at(bound.at);
            svg.push_str(&format!(
                "<path class=\"bound\" d=\"M{x:.1} {:.1}v{}\"><title>target: {}</title></path>",
                top - 3.5,
                BAR_HEIGHT + 7.0,
                figure(bound.at)
            ));
            // Move the figure if the mark would cross it.
            if x > end && x < end + FIGURE_WIDTH {
                end = x;
            }
        }
        let ratio = row.ratios.iter().find(|ratio| ratio.peer == cell.server);
        svg.push_str(&format!(
            "<text class=\"value\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>",
            end + 10.0,
            figure(value.median)
        ));
        if let Some(ratio) = ratio {
            svg.push_str(&format!(
                "<text class=\"ratio\" x=\"{WIDTH}\" y=\"{baseline:.1}\">{:.2}\u{d7}</text>",
                ratio.value.median
            ));
        }
    }
    svg.push_str("</svg>");
    svg
}

fn samples_text(cell: &Cell) -> String {
    let samples: Vec<_> = cell.samples.iter().map(|&sample| figure(sample)).collect();
    format!("{}: median {}, rounds {}", cell.server, figure(cell.value.median), samples.join(", "))
}

/// The figure that fills the whole width: each timed row has its own scale, counts of a section share one.
pub fn scale(section: &Section, row: &ResultRow) -> f64 {
    let timed = row.cells.iter().any(|cell| !cell.windows.is_empty());
    let rows = if timed { std::slice::from_ref(row) } else { &section.rows[..] };
    let largest = rows.iter().flat_map(|row| &row.cells).map(|cell| cell.value.high).fold(0.0, f64::max);
    if largest > 0.0 { largest } else { 1.0 }
}

const CURVE_WIDTH: f64 = 350.0;
const CURVE_HEIGHT: f64 = 190.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 24.0;

/// Latency by percentile, both axes logarithmic: to the right each mark is ten times rarer.
pub fn curves(row: &ResultRow, hue: &dyn Fn(&str) -> String) -> Option<String> {
    let points = || row.cells.iter().flat_map(|cell| &cell.curve);
    let slowest = points().map(|point| point.us).fold(0.0, f64::max);
    let fastest = points().map(|point| point.us).filter(|&us| us > 0.0).fold(f64::INFINITY, f64::min);
    let nines = points().map(|point| nines(*point)).fold(0.0, f64::max);
    if !(slowest > 0.0 && nines >= 1.0) {
        return None;
    }
    let (bottom, top) = (step_down(fastest).log10(), step_up(slowest).log10());
    let x = |nines_at: f64| LEFT + (CURVE_WIDTH - LEFT - RIGHT) * nines_at / nines;
    let y = |us: f64| {
        let share = (us.max(1e-3).log10() - bottom) / (top - bottom);
        CURVE_HEIGHT - BOTTOM - (CURVE_HEIGHT - TOP - BOTTOM) * share
    };
    let mut svg = format!(
        "<svg class=\"curves\" viewBox=\"0 0 {CURVE_WIDTH} {CURVE_HEIGHT}\" role=\"img\" aria-label=\"Latency of {}\">",
        escape(&row.title)
    );
    for us in ticks(bottom, top) {
        svg.push_str(&format!(
            "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{1}\"/><text class=\"tick y\" x=\"{2}\" y=\"{3:.1}\">{4}</text>",
            y(us),
            CURVE_WIDTH - RIGHT,
            LEFT - 6.0,
            y(us) + 3.5,
            duration(us)
        ));
    }
    for (quantile, name) in
        [(0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99"), (0.99999, "99.999")]
    {
        let at = -(1.0f64 - quantile).log10();
        if at <= nines + 1e-6 {
            svg.push_str(&format!(
                "<path class=\"grid\" d=\"M{0:.1} {TOP}V{1}\"/><text class=\"tick x\" x=\"{0:.1}\" \
                 y=\"{2}\">{name}</text>",
                x(at),
                CURVE_HEIGHT - BOTTOM,
                CURVE_HEIGHT - 8.0
            ));
        }
    }
    for cell in row.cells.iter().filter(|cell| !cell.curve.is_empty()) {
        let path: Vec<_> =
            cell.curve.iter().map(|point| format!("{:.1} {:.1}", x(self::nines(*point)), y(point.us))).collect();
        svg.push_str(&format!(
            "<path class=\"curve {}\" d=\"M{}\"><title>{}</title></path>",
            hue(&cell.server),
            path.join("L"),
            escape(&cell.server)
        ));
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// How rare: 0 for the fastest, 1 at 90 %, 2 at 99 %.
fn nines(point: CurvePoint) -> f64 {
    -(1.0 - point.quantile).max(1e-9).log10()
}

/// The nearest of 1, 2, 5, 10, ... at or below, and at or above.
fn step_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|step| step * decade).find(|&step| step <= value * 1.000_001).unwrap_or(decade)
}

pub(super) fn step_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * decade).find(|&step| step >= value * 0.999_999).unwrap_or(decade * 10.0)
}

/// Lines of the latency axis: 1-2-5 where there are few decades, else decades.
fn ticks(bottom: f64, top: f64) -> Vec<f64> {
    let steps: &[f64] = if top - bottom > 2.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let decades = bottom.floor() as i32..=top.ceil() as i32;
    decades
        .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
        .filter(|us| us.log10() >= bottom - 1e-9 && us.log10() <= top + 1e-9)
        .collect()
}

fn duration(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 999_999.0 => (us / 1e6, "s"),
        us if us >= 999.9 => (us / 1e3, "ms"),
        us => (us, "\u{b5}s"),
    };
    format!("{value:.0} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    fn attribute<'s>(svg: &'s str, after: &str, name: &str) -> Vec<&'s str> {
        svg.match_indices(after)
            .filter_map(|(at, _)| svg[at..].split_once(&format!("{name}=\""))?.1.split('"').next())
            .collect()
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let results = sample();
        let (section, row) = (&results.sections[0], &results.sections[0].rows[0]);
        let svg = bars(row, 0.82, Some(&Bound { subject: "onggi", at: 0.6 }), &|name| name.to_owned());
        let widths: Vec<f64> =
            attribute(&svg, "class=\"bar ", "width").iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(widths.len(), 2);
        assert!((widths[0] / widths[1] - 0.41 / 0.80).abs() < 0.01, "{widths:?}");
        assert!(svg.contains("class=\"bound\"") && svg.contains("1.93\u{d7}"), "{svg}");
        assert!((scale(section, row) - 0.81).abs() < 1e-9);
    }

    #[test]
    fn curves_rise_to_the_right() {
        let svg = curves(&sample().sections[0].rows[0], &|name| name.to_owned()).unwrap();
        let path = attribute(&svg, "class=\"curve onggi\"", "d")[0].trim_start_matches('M').to_owned();
        let points: Vec<(f64, f64)> = path
            .split('L')
            .map(|pair| pair.split_once(' ').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        assert!(points.len() > 50);
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1), "{points:?}");
    }

    #[test]
    fn axis_steps_enclose_the_value() {
        assert_eq!((step_down(37.0), step_up(37.0)), (20.0, 50.0));
        assert_eq!((step_down(100.0), step_up(100.0)), (100.0, 100.0));
        assert_eq!(ticks(1.0, 2.0), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(duration(2500.0), "2 ms");
    }
}
