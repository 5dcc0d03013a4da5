//! Code that the fuzz targets share.
#![forbid(unsafe_code)]

/// Sizes from this value on mean whole kilobytes, as socket reads return them; smaller ones mean up to 15 bytes.
pub const LONG_PIECE: u8 = 0xc0;

/// Splits `data` into pieces whose sizes come from `sizes`, repeatedly. Without sizes, one piece.
pub fn pieces<'a>(data: &'a [u8], sizes: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = data;
    for size in sizes.iter().cycle() {
        let size =
            if *size < LONG_PIECE { usize::from(size % 15) + 1 } else { usize::from(size - LONG_PIECE + 1) * 1024 };
        let (head, tail) = rest.split_at(size.min(rest.len()));
        if head.is_empty() {
            break;
        }
        pieces.push(head);
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

/// Splits fuzz input into a few bytes of control and the data.
pub fn control(input: &[u8], len: usize) -> Option<(&[u8], &[u8])> {
    input.split_at_checked(len)
}
