//! Figures as JSON for the page.

use crate::figures::Figures;
use crate::metrics::kind_word;
use base::figures::TABLE;
use serde_json::{Map, Value};

/// One object: numbers as numbers, other values as text.
pub fn object(figures: &Figures<'_>) -> Value {
    let field = |(name, value): &(&str, &str)| ((*name).to_owned(), value_of(value));
    Value::Object(figures.all().iter().map(field).collect::<Map<_, _>>())
}

/// What the fields of INFO are, in their order.
pub fn table() -> Value {
    let row = |row: &&base::figures::Figure| {
        serde_json::json!({
            "section": row.section, "field": row.field, "metric": row.metric, "kind": kind_word(row.kind),
            "unit": row.unit.word(), "help": row.help,
        })
    };
    TABLE.iter().map(row).collect()
}

/// A number only if JSON writes it as it stands: `007` and `1e400` are text.
fn value_of(text: &str) -> Value {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    let number = if is_plain { serde_json::from_str(text).ok() } else { None };
    number.filter(Value::is_number).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_text() {
        let text = "# Server\r\nzero:0\r\nten:10\r\npart:1.25\r\nold:007\r\nless:-3\r\nhuge:1e400\r\n\
            name:a\"b\\c\r\nempty:\r\n";
        let json = object(&Figures::parse(text));
        let wanted = serde_json::json!({
            "zero": 0, "ten": 10, "part": 1.25, "old": "007", "less": -3, "huge": "1e400",
            "name": "a\"b\\c", "empty": "",
        });
        assert_eq!(json, wanted);
    }
}
