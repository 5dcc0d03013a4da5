//! What gives entries to a feed does not run ahead of the disk.

use checkpoint::Feed;
use engine::Backlog;
use std::thread;
use std::time::Duration;

/// How long the reading waits before it looks again whether the disk has taken what was read.
const WAIT: Duration = Duration::from_millis(1);

/// Waits until the disk has taken enough of what was given to the feed, or the feed was aborted.
pub(crate) fn wait_for_room(feed: &Feed, backlog: &Backlog) {
    while !backlog.has_room_for_walk() && !feed.is_aborted() {
        thread::sleep(WAIT);
    }
}
