//! The text of INFO, field by field.

/// Fields in their order.
pub struct Figures<'t> {
    fields: Vec<(&'t str, &'t str)>,
}

/// A value with parts: `keys=1,expires=0`.
#[derive(Clone, Copy)]
pub struct List<'t>(&'t str);

impl<'t> Figures<'t> {
    /// Reads the text of INFO. Headings and lines without a colon are left out.
    pub fn parse(text: &'t str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self { fields: lines.filter_map(|line| line.split_once(':')).collect() }
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'t str> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value)
    }

    /// The value of a field that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        number(self.get(name)?)
    }

    /// All fields that are numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (&'t str, f64)> {
        self.fields.iter().filter_map(|(field, value)| Some((*field, number(value)?)))
    }

    /// Fields with this beginning whose values have parts, without the beginning.
    pub fn lists(&self, beginning: &str) -> impl Iterator<Item = (&'t str, List<'t>)> {
        let named = self.fields.iter().filter(|(_, value)| value.contains('='));
        named.filter_map(move |(field, value)| Some((field.strip_prefix(beginning)?, List(value))))
    }

    /// All fields.
    pub fn all(&self) -> &[(&'t str, &'t str)] {
        &self.fields
    }
}

impl<'t> List<'t> {
    /// A part that is a number.
    pub fn number(self, name: &str) -> Option<f64> {
        self.numbers().find(|(part, _)| *part == name).map(|(_, value)| value)
    }

    /// All parts that are numbers.
    pub fn numbers(self) -> impl Iterator<Item = (&'t str, f64)> {
        let parts = self.0.split(',').filter_map(|part| part.split_once('='));
        parts.filter_map(|(part, value)| Some((part, number(value)?)))
    }
}

/// A number, a percentage, or the state of something that succeeds or fails.
fn number(value: &str) -> Option<f64> {
    match value {
        "ok" => Some(1.0),
        "err" => Some(0.0),
        _ => value.strip_suffix('%').unwrap_or(value).parse().ok().filter(|number: &f64| number.is_finite()),
    }
}
