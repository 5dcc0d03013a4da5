//! Figures as JSON for the page.

use crate::figures::Figures;

/// One object: numbers as numbers, other values as text.
pub fn render(figures: &Figures<'_>) -> String {
    let mut text = String::from("{");
    for (number, (field, value)) in figures.all().iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&quoted(field));
        text.push(':');
        // JSON has fewer forms of numbers than Rust reads.
        let is_number = value.parse::<f64>().is_ok_and(f64::is_finite)
            && value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
            && !value.starts_with(['0', '.', '-'])
            && !value.ends_with('.')
            || *value == "0";
        text.push_str(&if is_number { (*value).to_owned() } else { quoted(value) });
    }
    text.push('}');
    text
}

fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for character in value.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            character if u32::from(character) < 0x20 => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => text.push(character),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_text() {
        let text = "# Server\r\nzero:0\r\nten:10\r\npart:1.25\r\nold:007\r\nless:-3\r\nhuge:1e400\r\n\
            name:a\"b\\c\r\nempty:\r\n";
        let json = render(&Figures::parse(text));
        assert_eq!(
            json,
            r#"{"zero":0,"ten":10,"part":1.25,"old":"007","less":"-3","huge":"1e400","name":"a\"b\\c","empty":""}"#
        );
    }
}
