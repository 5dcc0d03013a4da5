//! A table's bytes on their way back from the medium, through the page cache or past it.
//!
//! ```text
//!   past it  | .....[ part ]... |    the whole blocks around a part are read, and the part copied out
//! ```
//!
//! Parts that the system does not read past its page cache go through it (see `vfs::File::alignment`).

use std::cell::RefCell;

use vfs::{AlignedBuf, File, FsError};

use crate::error::Result;

/// A longer buffer of a thread is not kept, in bytes.
const READ_BUFFER_BYTES_MAX: usize = 512 << 10;

thread_local! {
    /// Where a thread reads whole blocks to.
    static BLOCKS: RefCell<AlignedBuf> = RefCell::new(AlignedBuf::zeroed(0));
}

/// Fills the buffer from `offset` of the file, however the file was opened.
///
/// # Errors
/// As those of [`File::read_exact_at`].
pub(super) fn read_exact_at(file: &dyn File, buf: &mut [u8], offset: u64) -> Result<()> {
    let alignment = file.alignment();
    if alignment == 1 {
        return Ok(file.read_exact_at(buf, offset)?);
    }
    let from = offset / alignment as u64 * alignment as u64;
    let head = (offset - from) as usize;
    let wanted = head + buf.len();
    BLOCKS.with_borrow_mut(|blocks| {
        if blocks.len() < wanted {
            *blocks = AlignedBuf::zeroed(wanted.next_multiple_of(alignment));
        }
        let (mut done, whole) = (0, wanted.next_multiple_of(alignment));
        while done < wanted {
            match file.read_at(&mut blocks[done..whole], from + done as u64) {
                Ok(read) => {
                    done += read;
                    // The file ends, or a read of whole blocks would have ended with one.
                    if done < wanted && (read == 0 || !done.is_multiple_of(alignment)) {
                        let (path, got) = (file.path().into(), done.saturating_sub(head));
                        return Err(FsError::EndOfFile { path, offset, wanted: buf.len(), got }.into());
                    }
                }
                Err(error) if error.is_interrupted() => {}
                Err(error) => return Err(error.into()),
            }
        }
        buf.copy_from_slice(&blocks[head..wanted]);
        if blocks.len() > READ_BUFFER_BYTES_MAX {
            *blocks = AlignedBuf::zeroed(0);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::path::Path;
    use vfs::{FileSystem, OpenOptions, OutFile, SimFs};

    /// Any bytes in any pieces come back, from any place, whichever way they go; a read beyond the end is refused.
    #[test]
    fn bytes_come_back_past_the_page_cache_or_not() {
        let (fs, mut rng) = (SimFs::new(1), Rng::new(2));
        for (number, len) in [0, 1, 4096, 5000, 700_000].into_iter().enumerate() {
            for is_direct in [false, true] {
                let path = format!("/{number}-{is_direct}");
                let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
                let mut out = OutFile::create(&fs, Path::new(&path), 100_000, is_direct).unwrap();
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let (piece, behind) = rest.split_at((1 + rng.below(50_000) as usize).min(rest.len()));
                    out.append(piece).unwrap();
                    rest = behind;
                }
                assert_eq!(out.finish().unwrap(), len as u64);
                assert_eq!(fs.contents()[Path::new(&path)], bytes);
                for options in [OpenOptions::read(), OpenOptions::read().direct()] {
                    let file = fs.open(Path::new(&path), options).unwrap();
                    for _ in 0..50 {
                        let from = rng.below(len as u64 + 1) as usize;
                        let mut found = vec![0; rng.below((len - from) as u64 + 1) as usize];
                        read_exact_at(&*file, &mut found, from as u64).unwrap();
                        assert!(found == bytes[from..from + found.len()]);
                    }
                    assert!(read_exact_at(&*file, &mut [0; 7], len as u64 - len.min(6) as u64).is_err());
                }
            }
        }
    }
}
