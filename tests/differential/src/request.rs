//! Requests: an array of bulk strings, or one inline line.

/// A request in the form clients send: `*N` and each argument with its length.
pub fn encode(arguments: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The same request as a person types it.
pub fn encode_inline(arguments: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let words: Vec<String> = arguments.iter().map(|argument| crate::text::quoted(argument.as_ref())).collect();
    format!("{}\r\n", words.join(" ")).into_bytes()
}
