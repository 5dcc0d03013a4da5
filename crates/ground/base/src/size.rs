//! Sizes as people read them: in the output of tools, on a terminal, and on the page, whose script has the same rule.

const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// A size such as `1.5 MiB`, rounded to a tenth.
pub fn size(bytes: u64) -> String {
    match bytes {
        1 => return "1 byte".to_owned(),
        0..1024 => return format!("{bytes} bytes"),
        _ => {}
    }
    let mut shift = 0;
    let (mut tenths, mut name) = (0, "");
    for unit in UNITS {
        shift += 10;
        // A half is rounded up, as JavaScript does it.
        (tenths, name) = ((u128::from(bytes) * 20 + (1 << shift)) >> (shift + 1), unit);
        if tenths < 10_240 {
            break;
        }
    }
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test of the page reads the same list.
    #[test]
    fn sizes_are_those_of_the_list() {
        let list = include_str!("../testdata/sizes.txt").lines().filter(|line| !line.starts_with('#'));
        let mut count = 0;
        for line in list {
            let (bytes, text) = line.split_once(' ').unwrap();
            assert_eq!(size(bytes.parse().unwrap()), text, "{bytes}");
            count += 1;
        }
        assert!(count > 20);
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }
}
