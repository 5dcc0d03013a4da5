//! The one reply to a pipe of ARCUS requests.

/// The most requests of a pipe.
const REQUESTS_MAX: u32 = 500;

/// Words that begin a reply after which a pipe takes no more requests.
const FAILURES: [&str; 3] = ["CLIENT_ERROR", "SERVER_ERROR", "ERROR"];

/// Replies that wait for the end of their pipe.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    lines: String,
    count: u32,
    is_over: bool,
}

impl Pipe {
    /// Whether requests are still carried out.
    pub(super) fn is_open(&self) -> bool {
        !self.is_over
    }

    /// Adds the reply to a request. Gives the reply to the whole pipe if it ends here before its end: after an error,
    /// and when it is full though more requests follow.
    pub(super) fn push(&mut self, status: &str, has_more: bool) -> Option<String> {
        if self.is_over {
            return None;
        }
        self.lines.push_str(status);
        self.lines.push_str("\r\n");
        self.count = self.count.saturating_add(1);
        let end = match FAILURES.iter().any(|word| status.starts_with(word)) {
            true => "PIPE_ERROR bad error",
            false if has_more && self.count == REQUESTS_MAX => "PIPE_ERROR command overflow",
            false => return None,
        };
        self.is_over = true;
        Some(self.reply(end))
    }

    /// The reply at the end of the pipe, if none was given before.
    pub(super) fn end(&self) -> Option<String> {
        self.is_open().then(|| self.reply("END"))
    }

    fn reply(&self, end: &str) -> String {
        format!("RESPONSE {}\r\n{}{end}\r\n", self.count, self.lines)
    }
}
