//! What each command did between two readings, of the fields `cmdstat_*` of INFO.

use std::collections::HashMap;
use web::Figures;

/// Totals of a command since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    calls: f64,
    usec: f64,
    failed: f64,
}

/// A command between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// Its name, such as `config|get`.
    pub name: String,
    /// Calls a second.
    pub calls: f64,
    /// Microseconds of a call.
    pub usec_per_call: f64,
    /// Milliseconds of all calls in a second.
    pub ms: f64,
    /// Calls a second that failed or were rejected.
    pub failed: f64,
}

/// The totals in the text of INFO.
pub fn totals(figures: &Figures<'_>) -> HashMap<String, Total> {
    let stats = figures.lists("cmdstat_").map(|(name, parts)| {
        let part = |name| parts.number(name).unwrap_or(0.0);
        let failed = part("failed_calls") + part("rejected_calls");
        (name.to_owned(), Total { calls: part("calls"), usec: part("usec"), failed })
    });
    stats.collect()
}

/// What the commands did in the seconds between two readings: those that took most time come first.
///
/// A total that shrinks (CONFIG RESETSTAT) begins anew.
pub fn uses(before: &HashMap<String, Total>, now: &HashMap<String, Total>, seconds: f64) -> Vec<Use> {
    let mut uses: Vec<Use> = now
        .iter()
        .filter_map(|(name, total)| {
            let before = before.get(name).copied().filter(|before| before.calls <= total.calls).unwrap_or_default();
            let (calls, usec) = (total.calls - before.calls, (total.usec - before.usec).max(0.0));
            let failed = (total.failed - before.failed).max(0.0);
            (calls > 0.0 || failed > 0.0).then(|| Use {
                name: name.clone(),
                calls: calls / seconds,
                usec_per_call: usec / calls.max(1.0),
                ms: usec / 1000.0 / seconds,
                failed: failed / seconds,
            })
        })
        .collect();
    uses.sort_by(|a, b| b.ms.total_cmp(&a.ms).then_with(|| a.name.cmp(&b.name)));
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences() {
        let before = "cmdstat_get:calls=10,usec=20,usec_per_call=2.00,rejected_calls=0,failed_calls=0\r\n";
        let now = "cmdstat_get:calls=30,usec=120,usec_per_call=4.00,rejected_calls=1,failed_calls=1\r\n\
                   cmdstat_set:calls=4,usec=4000,usec_per_call=1000.00,rejected_calls=0,failed_calls=0\r\n";
        let uses = uses(&totals(&Figures::parse(before)), &totals(&Figures::parse(now)), 2.0);
        let set = Use { name: "set".into(), calls: 2.0, usec_per_call: 1000.0, ms: 2.0, failed: 0.0 };
        let get = Use { name: "get".into(), calls: 10.0, usec_per_call: 5.0, ms: 0.05, failed: 1.0 };
        assert_eq!(uses, [set, get]);
    }

    #[test]
    fn totals_that_shrink_begin_anew() {
        let before = totals(&Figures::parse("cmdstat_get:calls=10,usec=20\r\n"));
        let now = totals(&Figures::parse("cmdstat_get:calls=3,usec=6\r\n"));
        assert_eq!(uses(&before, &now, 1.0)[0].calls, 3.0);
        assert_eq!(uses(&now, &now, 1.0), []);
    }
}
