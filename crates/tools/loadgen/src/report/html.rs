//! One page: verdicts first, bars for every row, latency curves, and finally the information for repeating the
//! measurement.

use super::markup::{Hues, escape};
use super::{chart, markdown, picture, reached, score, title};
use crate::results::Verdict;
use crate::results::{Better, ResultRow, Results, Section};

/// The complete page.
pub fn render(results: &Results) -> String {
    let hues = Hues::new(results);
    let hue = |name: &str| hues.class(name);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0} - onggi bench</title>\n\
         <style>\n{1}</style>\n</head>\n<body>\n<main>\n<p class=\"kicker\">onggi bench</p>\n<h1>{0}</h1>\n\
         <p class=\"lead\">{2}. Measured on {3} UTC in {4}.</p>\n",
        escape(title(results)),
        include_str!("page.css"),
        escape(&results.machine.to_string()),
        escape(&results.started),
        minutes(results.seconds),
    );
    page.push_str(&score_line(results));
    page.push_str(&legend(results, &hue));
    page.push_str(&pictures_html(results, &hue));
    for section in &results.sections {
        page.push_str(&section_html(section, results, &hue));
    }
    page.push_str(&latency_html(results, &hue));
    page.push_str(&again_html(results));
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

fn minutes(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} seconds"),
        seconds => format!("{:.0} minutes", seconds / 60.0),
    }
}

fn score_line(results: &Results) -> String {
    match score(results) {
        (_, 0) => String::new(),
        (met, judged) => {
            format!(
                "<p class=\"score\"><b>{met} of {judged}</b> <span>targets of {} met</span></p>\n",
                escape(&results.subject)
            )
        }
    }
}

fn legend(results: &Results, hue: &dyn Fn(&str) -> String) -> String {
    let items: String = results
        .servers
        .iter()
        .map(|server| {
            format!(
                "<li><i class=\"{}\"></i>{} <small>{}</small></li>",
                hue(&server.name),
                escape(&server.name),
                escape(&server.version)
            )
        })
        .collect();
    format!("<ul class=\"legend\">{items}</ul>\n")
}

fn pictures_html(results: &Results, hue: &dyn Fn(&str) -> String) -> String {
    let drawn = results.pictures.iter().filter_map(|picture| {
        Some(format!(
            "<section>\n<h2>{}</h2>\n<p class=\"about\">{} In {}.</p>\n{}\n</section>\n",
            escape(&picture.title),
            escape(&picture.about),
            escape(&picture.unit),
            picture::svg(picture, hue)?
        ))
    });
    drawn.collect()
}

fn section_html(section: &Section, results: &Results, hue: &dyn Fn(&str) -> String) -> String {
    let direction = match section.better {
        Better::Lower => "shorter is better",
        Better::Higher => "longer is better",
    };
    let repeated = section.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.samples.len() > 1);
    let whiskers = if repeated { " Whiskers are 90 % intervals of the median." } else { "" };
    let bounds = match section.rows.iter().any(|row| row.verdict.is_some()) {
        true if section.better == Better::Lower => " The upright mark is the target: the bar must end before it.",
        true => " The upright mark is the target: the bar must reach it.",
        false => "",
    };
    let ratios = if section.rows.iter().any(|row| !row.ratios.is_empty()) {
        format!(" At the right: how many times better {} is.", results.subject)
    } else {
        String::new()
    };
    let mut html = format!(
        "<section>\n<h2>{}</h2>\n<p class=\"about\">{} In {}, {direction}.{}{bounds}{}</p>\n",
        escape(&section.title),
        escape(&section.about),
        escape(&section.unit.replace("us CPU", "\u{b5}s of CPU time")),
        whiskers,
        escape(&ratios),
    );
    for row in &section.rows {
        let bound = bound(section, row, &results.subject);
        let bound = bound.map(|at| chart::Bound { subject: &results.subject, at });
        html.push_str(&format!(
            "<div class=\"row\"><header><h3>{}</h3>{}</header>\n{}</div>\n",
            escape(&row.title),
            row.verdict.as_ref().map_or_else(String::new, verdict_html),
            chart::bars(row, chart::scale(section, row), bound.as_ref(), hue)
        ));
    }
    html.push_str("</section>\n");
    html
}

/// The latest end of the subject's bar: the target as a figure of the section's unit.
fn bound(section: &Section, row: &ResultRow, subject: &str) -> Option<f64> {
    let verdict = row.verdict.as_ref()?;
    match &verdict.over {
        None => Some(verdict.must),
        Some(peer) => {
            let peer = row.cells.iter().find(|cell| cell.server == *peer && cell.server != subject)?.value.median;
            Some(if section.better == Better::Lower { peer / verdict.must } else { peer * verdict.must })
        }
    }
}

fn verdict_html(verdict: &Verdict) -> String {
    let (class, state) = match (verdict.met, verdict.moonshot_met) {
        (true, true) => ("met", "Met, and the moonshot"),
        (true, false) => ("met", "Met"),
        (false, _) => ("missed", "Not met"),
    };
    let caution = verdict
        .caution
        .as_ref()
        .map_or_else(String::new, |why| format!("<span class=\"caution\">{}</span>", escape(why)));
    format!(
        "<span class=\"verdict {class}\"><b>{state}</b>: {}, reached {}{caution}</span>",
        escape(&verdict.target),
        reached(verdict)
    )
}

fn latency_html(results: &Results, hue: &dyn Fn(&str) -> String) -> String {
    let rows = results.sections.iter().flat_map(|section| &section.rows);
    let plots: String = rows
        .filter_map(|row| {
            let svg = chart::curves(row, hue)?;
            Some(format!("<figure><figcaption>{}</figcaption>{svg}</figure>\n", escape(&row.title)))
        })
        .collect();
    if plots.is_empty() {
        return String::new();
    }
    format!(
        "<section>\n<h2>Latency by percentile</h2>\n<p class=\"about\">All rounds together, lower is better; to the \
         right, each mark is ten times rarer. In a closed loop a faster server is also asked more.</p>\n\
         <div class=\"plots\">\n{plots}</div>\n</section>\n"
    )
}

fn again_html(results: &Results) -> String {
    let mut list = format!(
        "<dt>Command</dt><dd><code>{}</code></dd>\n<dt>Load</dt><dd>{}</dd>\n",
        escape(&results.command_line),
        escape(&markdown::load_line(results))
    );
    for server in &results.servers {
        let cores = server.cores.as_ref().map_or_else(String::new, |cores| format!(", on core {cores}"));
        list.push_str(&format!(
            "<dt>{}</dt><dd>{}, allocator {}{}<br><code>{}</code>{}</dd>\n",
            escape(&server.name),
            escape(&server.version),
            escape(&server.allocator),
            escape(&cores),
            escape(&server.command),
            server.settings.iter().map(|line| format!("<br><code>{}</code>", escape(line))).collect::<String>()
        ));
    }
    list.push_str(&format!(
        "<dt>Machine</dt><dd>{}; load average {} before and {} after</dd>\n",
        escape(&results.machine.to_string()),
        results.machine.load_average,
        results.load_average_end
    ));
    format!("<section>\n<h2>To measure again</h2>\n<dl>\n{list}</dl>\n</section>\n")
}

#[cfg(test)]
mod tests {
    use crate::report::tests::sample;

    #[test]
    fn the_page_is_complete_and_needs_nothing_from_elsewhere() {
        let page = super::render(&sample());
        for part in ["1 of 2", "class=\"bound\"", "Latency by percentile", "How &lt;it&gt; was measured.", "Not met"] {
            assert!(page.contains(part), "missing {part:?}");
        }
        for foreign in ["http:", "https:", "<script", "url(", "@import", "< &`"] {
            assert!(!page.contains(foreign), "{foreign:?} in the page");
        }
        for tag in ["section", "svg", "div", "dl", "ul", "figure", "header", "main", "text", "title"] {
            let count = |pattern: String| page.matches(&pattern).count();
            assert_eq!(count(format!("<{tag}>")) + count(format!("<{tag} ")), count(format!("</{tag}>")), "{tag}");
        }
    }
}
