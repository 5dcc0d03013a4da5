//! The RDB file that `BGSAVE RDB` asks for: made of a checkpoint that has just been taken, on the keeper's thread, so
//! that no other checkpoint removes its files meanwhile.

use crate::error::DurabilityError;
use crate::keeper::Durability;
use crate::rdb_writer::{RdbFigures, RdbWritten, WriteRdb};
use rdb::Target;
use std::time::Instant;

impl Durability {
    /// Sets the maker of RDB files. Once, before the server serves.
    pub fn set_rdb_writer(&self, writer: std::sync::Arc<dyn WriteRdb>) {
        // A second one is not there: the server calls this once.
        let _ = self.rdb_writer.set(writer);
    }

    /// Makes the file of the checkpoint that was just taken. On the keeper's thread, while the checkpoint counts as
    /// running.
    pub(crate) fn write_rdb(&self, target: Target) -> Result<(), DurabilityError> {
        // What is left can be cancelled again.
        if let Some(going) = &mut self.state.lock().running {
            going.is_decided = false;
            going.feed = None;
        }
        let since = Instant::now();
        let result = self.try_write_rdb(target);
        let mut state = self.state.lock();
        match result {
            Ok(written) => {
                if written.formless > 0 {
                    let keys = written.formless;
                    let why = "RDB files hold no b+trees, and no collections without elements";
                    self.parts.tell.say(&format!("RDB file lacks {keys} keys: {why}"));
                }
                let (keys, bytes, ms) = (written.keys, written.bytes, since.elapsed().as_millis());
                let path = written.path.display();
                self.parts.tell.say(&format!("RDB file done: {path}, {keys} keys, {bytes} bytes in {ms} ms"));
                state.rdb = RdbFigures {
                    count: state.rdb.count + 1,
                    last_error: None,
                    last_ms: Some(self.parts.clock.now_ms()),
                    last_keys: keys,
                    last_bytes: bytes,
                };
                Ok(())
            }
            Err(why) => {
                self.parts.tell.say(&format!("RDB file failed: {why}; the checkpoint itself is taken"));
                state.rdb.last_error = Some(why.clone());
                Err(DurabilityError::Rdb(why))
            }
        }
    }

    fn try_write_rdb(&self, target: Target) -> Result<RdbWritten, String> {
        let writer = self.rdb_writer.get().ok_or("this server makes no RDB files")?;
        let place = self.manifest.lock();
        let manifest = place.as_ref().ok_or("nothing is loaded yet")?.current();
        writer.write(&self.dir, manifest, target, &|| self.is_cancelled())
    }
}
