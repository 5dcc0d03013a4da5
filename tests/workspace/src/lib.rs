//! Tests of the source tree itself, for the rules that no compiler checks. Nothing depends on this crate.
//!
//! ```text
//! cargo metadata --> metadata --+--> graph          a crate uses lower layers only
//!                               +--> circles        no file imports one that imports it again
//!                               +--> dependencies   every crate from outside has a stated reason; the tree is counted
//!                               +--> unsafe_code    unsafe stands where it is listed, as often as it is listed
//!                               +--> reachable      no file that nothing uses
//!                               +--> tidy           no leftover markers, disabled code, machine paths, giant files
//!                               +--> prose          comments and pages in plain words, lines that fit a screen
//!                               +--> field          each fault found in the field names a test that exists
//!                               +--> newcomer       questions are answered in few files
//!                               +--> examples       examples of formats have the bytes of golden files
//!                               +--> commits        the hook for messages of commits refuses what it should
//!                               +--> links          links and `docs/` paths lead somewhere
//! ```

#![cfg(test)]
#![forbid(unsafe_code)]

mod circles;
mod commits;
mod dependencies;
mod examples;
mod field;
mod graph;
mod links;
mod metadata;
mod newcomer;
mod prose;
mod reachable;
mod tidy;
mod tree;
mod unsafe_code;
