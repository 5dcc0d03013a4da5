//! A figure over time, one row per server on the same axes, the event shaded: as part of the page, and as a separate
//! SVG file.

use super::chart::step_up;
use super::figure;
use super::markup::{Hues, escape};
use crate::results::{Picture, Results, Track};

const WIDTH: f64 = 720.0;
/// The left end of the plots; the servers' names precede them.
const LEFT: f64 = 92.0;
/// Room for the figures of the vertical axis.
const RIGHT: f64 = 62.0;
const TOP: f64 = 14.0;
const ROW_HEIGHT: f64 = 84.0;
const ROW_PITCH: f64 = 104.0;
const BOTTOM: f64 = 26.0;
/// Approximate number of marks on the time axis.
const TIME_MARKS: f64 = 9.0;

/// The axes that all rows share.
struct Axes {
    from: f64,
    to: f64,
    top: f64,
}

impl Axes {
    fn of(picture: &Picture) -> Option<Self> {
        let from = picture.tracks.iter().map(|track| track.from_seconds).fold(f64::INFINITY, f64::min);
        let to = picture.tracks.iter().map(end_of).fold(f64::NEG_INFINITY, f64::max);
        let largest = picture.tracks.iter().flat_map(|track| &track.values).copied().fold(0.0, f64::max);
        (to > from && largest > 0.0).then(|| Self { from, to, top: step_up(largest) })
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * ((seconds - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }

    /// The distance from the upper edge of a row.
    fn y(&self, value: f64) -> f64 {
        ROW_HEIGHT * (1.0 - (value / self.top).clamp(0.0, 1.0))
    }
}

fn end_of(track: &Track) -> f64 {
    track.from_seconds + track.step_seconds * track.values.len() as f64
}

/// The picture as an element of the page. `hue` returns the colour of a server. `None` without values.
pub fn svg(picture: &Picture, hue: &dyn Fn(&str) -> String) -> Option<String> {
    let (height, body) = drawn(picture, hue)?;
    Some(format!(
        "<svg class=\"picture\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">{body}</svg>",
        escape(&picture.title)
    ))
}

/// Every picture as a complete separate file: name and text.
pub fn files(results: &Results) -> Vec<(String, String)> {
    let hues = Hues::new(results);
    let drawn = results.pictures.iter().enumerate().filter_map(|(at, picture)| {
        let (height, body) = drawn(picture, &|name| hues.class(name))?;
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-16 -34 {} {}\" role=\"img\">\n<style>\n{}</style>\n\
             <rect class=\"paper\" x=\"-16\" y=\"-34\" width=\"{0}\" height=\"{1}\"/>\n\
             <text class=\"heading\" x=\"0\" y=\"-12\">{}</text>\n{body}\n</svg>\n",
            WIDTH + 32.0,
            height + 50.0,
            include_str!("page.css"),
            escape(&picture.title)
        );
        Some((file_name(at), text))
    });
    drawn.collect()
}

/// Name of the file of a picture.
pub(crate) fn file_name(at: usize) -> String {
    format!("picture-{}.svg", at + 1)
}

/// Height and contents.
fn drawn(picture: &Picture, hue: &dyn Fn(&str) -> String) -> Option<(f64, String)> {
    let axes = Axes::of(picture)?;
    let height = TOP + ROW_PITCH * picture.tracks.len() as f64 + BOTTOM;
    let mut body = String::new();
    let rows_end = height - BOTTOM - (ROW_PITCH - ROW_HEIGHT);
    for seconds in marks(&axes) {
        let x = axes.x(seconds);
        body.push_str(&format!(
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{rows_end:.1}\"/><text class=\"tick x\" x=\"{x:.1}\" \
             y=\"{:.1}\">{}</text>",
            rows_end + 16.0,
            seconds_text(seconds)
        ));
    }
    for (number, track) in picture.tracks.iter().enumerate() {
        body.push_str(&row(track, &axes, TOP + ROW_PITCH * number as f64, &hue(&track.server)));
    }
    Some((height, body))
}

fn row(track: &Track, axes: &Axes, top: f64, hue: &str) -> String {
    let name = escape(&track.server);
    let mut svg = format!(
        "<rect class=\"shade\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{ROW_HEIGHT}\"><title>{name}: {} \
         s</title></rect><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
        axes.x(0.0),
        (axes.x(track.end_seconds) - axes.x(0.0)).max(1.0),
        figure(track.end_seconds),
        LEFT - 10.0,
        top + ROW_HEIGHT / 2.0 + 4.5
    );
    for value in [0.0, axes.top / 2.0, axes.top] {
        let y = top + axes.y(value);
        svg.push_str(&format!(
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"tick y\" x=\"{WIDTH}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT,
            y + 3.5,
            figure(value)
        ));
    }
    let points: Vec<String> = track
        .values
        .iter()
        .enumerate()
        .map(|(at, &value)| {
            // A value belongs to the whole step, so it is drawn in its middle.
            let seconds = track.from_seconds + track.step_seconds * (at as f64 + 0.5);
            format!("{:.1} {:.1}", axes.x(seconds), top + axes.y(value))
        })
        .collect();
    if !points.is_empty() {
        svg.push_str(&format!("<path class=\"curve {hue}\" d=\"M{}\"><title>{name}</title></path>", points.join("L")));
    }
    svg
}

/// Whole steps of 1, 2 or 5 between both ends, the beginning of the event among them.
fn marks(axes: &Axes) -> Vec<f64> {
    let step = step_up((axes.to - axes.from) / TIME_MARKS);
    let (first, last) = ((axes.from / step).ceil() as i64, (axes.to / step).floor() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

fn seconds_text(seconds: f64) -> String {
    // Steps are 1, 2 or 5 of some decade: more digits than that are rounding.
    let text = format!("{seconds:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{} s", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(server: &str, values: &[f64]) -> Track {
        let (from_seconds, step_seconds, end_seconds) = (-0.2, 0.1, 0.3);
        Track { server: server.into(), from_seconds, step_seconds, end_seconds, values: values.to_vec() }
    }

    fn picture(tracks: Vec<Track>) -> Picture {
        Picture { title: "A & B".into(), about: "How.".into(), unit: "ops".into(), tracks }
    }

    #[test]
    fn every_server_has_its_row_and_the_event_is_shaded() {
        let picture = picture(vec![track("a", &[10.0, 10.0, 5.0, 5.0, 0.0, 8.0]), track("b<", &[3.0; 6])]);
        let svg = svg(&picture, &|name| format!("hue-{}", name.len())).unwrap();
        assert_eq!(svg.matches("class=\"shade\"").count(), 2);
        assert_eq!(svg.matches("class=\"curve ").count(), 2);
        assert!(svg.contains("curve hue-2") && svg.contains("b&lt;") && svg.contains("A &amp; B"), "{svg}");
        let axes = Axes::of(&picture).unwrap();
        assert!((axes.to - 0.4).abs() < 1e-9 && axes.top == 10.0);
        assert_eq!((axes.y(10.0), axes.y(0.0), axes.x(-0.2)), (0.0, ROW_HEIGHT, LEFT));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(svg(&picture(Vec::new()), &|_| String::new()).is_none());
        assert!(svg(&picture(vec![track("a", &[0.0, 0.0])]), &|_| String::new()).is_none());
    }

    #[test]
    fn time_is_marked_at_round_seconds() {
        let axes = Axes { from: -5.0, to: 12.0, top: 1.0 };
        assert_eq!(marks(&axes), [-4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!([-4.0, 0.0, -0.0, 0.25].map(seconds_text), ["-4 s", "0 s", "0 s", "0.25 s"]);
    }
}
