//! CONFIG SET of directives without effect, by a whole server.

use crate::ending::{start, wait_for};
use crate::reply::Reply;
use vfs::SimFs;

/// Tools and test suites set these on every server. An error ended them, and silence would hide that nothing changes.
#[test]
fn a_directive_without_effect_is_accepted_and_the_log_says_so() {
    let fs = SimFs::new(1);
    let (server, lines) = start(&fs);
    let mut client = server.connect();
    assert_eq!(client.run(&["CONFIG", "SET", "hz", "30"]), Reply::Simple("OK".into()));
    assert!(wait_for(&lines, "CONFIG SET hz ").starts_with("CONFIG SET hz 30 is without effect: "));
    // One pair that is refused: nothing changes, and the log says nothing.
    assert!(matches!(client.run(&["CONFIG", "SET", "hz", "40", "timeout", "x"]), Reply::Error(_)));
    assert_eq!(client.run(&["CONFIG", "SET", "hz", "50"]), Reply::Simple("OK".into()));
    assert!(wait_for(&lines, "CONFIG SET hz ").starts_with("CONFIG SET hz 50 "));
}
