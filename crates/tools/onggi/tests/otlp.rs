//! A server that sends its figures to a collector.
#![cfg(feature = "otlp")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The settings reach the collector: its URL, a header, and a figure of the server that sends.
#[test]
fn a_server_sends_its_figures() {
    let (dir, collector) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let endpoint = format!("http://{}/v1/metrics", collector.local_addr().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_onggi"));
    command.args(["serve", "--port", "0", "--unixsocket"]).arg(dir.path().join("socket")).arg("--dir").arg(dir.path());
    command.args(["--http-port", "0", "--otlp-endpoint", &endpoint, "--otlp-interval", "1"]);
    command.args(["--otlp-headers", "x-scope=cache", "--sandbox", "no"]);
    let _server = Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    // The first requests may be of a server that does not serve yet.
    for _ in 0..30 {
        let (mut stream, _) = collector.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut reader = BufReader::new(&stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).unwrap() > 0, "{head:?}");
            if line.trim_end().is_empty() {
                break;
            }
            head.push(line.trim_end().to_ascii_lowercase());
        }
        assert_eq!(head[0], "post /v1/metrics http/1.1");
        assert!(head.iter().any(|line| line == "x-scope: cache"), "{head:?}");
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        let has = |word: &str| body.windows(word.len()).any(|bytes| bytes == word.as_bytes());
        assert!(has("service.instance.id") && has("redis_up"));
        if has("redis_memory_used_bytes") && has("onggi_workers") {
            return;
        }
    }
    panic!("30 requests without figures");
}
