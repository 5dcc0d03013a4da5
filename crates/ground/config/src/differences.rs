//! Settings whose value in force differs from the one that a file asks for.

use crate::directive::Kind;
use crate::syntax::printable;
use crate::{Settings, directives};

/// A setting whose value in force is not the one that a file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The directive.
    pub name: &'static str,
    /// Both values as CONFIG GET answers them: in force, and asked for. `None` for a secret.
    pub values: Option<(String, String)>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.values {
            Some((in_force, asked)) => write!(f, "{}: {in_force:?} is in force, {asked:?} is configured", self.name),
            None => write!(f, "{}: another value is in force than is configured (redacted)", self.name),
        }
    }
}

impl Settings {
    /// The settings in which these, in force, differ from those that are configured, in the order of the table.
    pub fn differences(&self, configured: &Self) -> Vec<Difference> {
        let found = directives().filter_map(|row| {
            let Kind::Supported(setting) = &row.kind else { return None };
            let (in_force, asked) = (setting.answer(self), setting.answer(configured));
            let values = (!row.sensitive).then(|| (printable(&in_force), printable(&asked)));
            (in_force != asked).then_some(Difference { name: row.name, values })
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    #[test]
    fn differences_name_both_values_but_no_secret() {
        let configured = Settings::default();
        assert!(configured.differences(&configured).is_empty());
        let mut in_force = Settings { port: 7000, ..configured.clone() };
        in_force.requirepass = Secret::new(b"hidden");
        let shown: Vec<_> = in_force.differences(&configured).iter().map(ToString::to_string).collect();
        let port = "port: \"7000\" is in force, \"6379\" is configured";
        assert_eq!(shown, [port, "requirepass: another value is in force than is configured (redacted)"]);
    }
}
