//! The end of the server: a thread that executes what SHUTDOWN and signals ask for.
//!
//! ```text
//! order -> hold writes -> wait for running turns -> decide -> checkpoint, log synced -> look at the outcome
//!                                                                 |- saved: stop the acceptor; writes stay held
//!                                                                 |- failed: release writes, log why, serve on, or end
//!                                                                 '- called off: release writes, serve on
//! ```
//!
//! E1. The decision comes after every turn that began before the hold, so a write is either part of what the decision
//!     sees or never acknowledged.
//! E2. A server whose data could not be saved keeps serving, unless the order says `force`; it then ends with an
//!     error.
//! E3. SHUTDOWN ABORT calls an order off until the outcome is known. A checkpoint that has begun continues.

use crate::listen::AcceptorHandle;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::serve_error::ServeError;
use admin::{CALLED_OFF, EndOrder, ShutdownRequest};
use command::Host;
use config::EndFlags;
use durability::{Cause, Durability, Phase, Tell};
use script::Scripts;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use store::Store;

/// Time between two looks at whether something is done.
const LOOK: Duration = Duration::from_millis(5);

/// What the ending thread needs of its server.
pub(crate) struct Ending<'s> {
    pub host: &'s Host,
    pub mailboxes: &'s [Arc<Mailbox<Message>>],
    /// What keeps the data, and whom to notify; `None` where it is kept in memory only.
    pub kept: Option<(&'s Durability, Arc<dyn Tell>)>,
    pub acceptor: AcceptorHandle,
}

impl Ending<'_> {
    /// Executes orders until one has ended the server, or something else has. Gives what could not be saved where the
    /// server was forced to end.
    pub fn run(&self) -> Result<(), ServeError> {
        let (request, pause) = (self.host.part::<admin::Needed, ShutdownRequest>(), &self.host.pause);
        while let Some((order, task)) = request.next() {
            let flags = self.flags(order);
            self.say(&format!("{order}: the server is to end"));
            pause.hold_for_end();
            self.phase(Phase::Stopping);
            let (has_turned, has_abandoned) = self.wait_for_turns(flags);
            let saved = if has_turned { self.save(flags) } else { Ok(()) };
            match saved {
                Err(why) if !flags.force && !has_abandoned => {
                    pause.release_from_end();
                    self.phase(Phase::Ready);
                    self.warn(&format!("{order} refused: {why}. The server keeps serving. {REMEDY}"));
                    task.end(Err(why));
                }
                _ if !request.decide() => {
                    pause.release_from_end();
                    self.phase(Phase::Ready);
                    self.say(&format!("{order} {CALLED_OFF}. The server keeps serving."));
                    task.end(Err(CALLED_OFF.to_owned()));
                }
                saved => {
                    task.end(Ok(()));
                    self.acceptor.stop();
                    return saved.map_err(|why| ServeError::Unsaved { why });
                }
            }
        }
        Ok(())
    }

    fn flags(&self, order: EndOrder) -> EndFlags {
        let settings = self.host.configuration.current();
        match order {
            EndOrder::Client(flags) => flags,
            EndOrder::Terminate => settings.shutdown_on_sigterm,
            EndOrder::Interrupt => settings.shutdown_on_sigint,
        }
    }

    /// Waits until each worker has ended the turn that it is in (E1); false when the server ends otherwise. An order
    /// to save nothing gives up a script that runs past its time; then it cannot be refused or called off any more,
    /// since the data is not what the log says.
    fn wait_for_turns(&self, flags: EndFlags) -> (bool, bool) {
        let gives_up = flags.save == Some(false);
        let mut has_abandoned = false;
        let (passed, all_passed) = channel();
        self.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::Fence(passed.clone())));
        let mut left = self.mailboxes.len();
        while left > 0 {
            match all_passed.recv_timeout(LOOK) {
                Ok(()) => left -= 1,
                Err(RecvTimeoutError::Timeout) if !self.is_over() => {
                    let is_busy = self.host.find::<Arc<Store>>().is_some_and(|store| store.gate.is_busy());
                    if gives_up
                        && is_busy
                        && !has_abandoned
                        && self.host.part::<admin::Needed, ShutdownRequest>().decide()
                    {
                        self.warn("a script that runs past its time is given up, with what it has changed");
                        self.host.part::<script::Needed, Arc<Scripts>>().running.abandon();
                        has_abandoned = true;
                    }
                }
                Err(_) => return (false, has_abandoned),
            }
        }
        (true, has_abandoned)
    }

    /// Saves what the order and the settings ask for. An error says what is not durable.
    fn save(&self, flags: EndFlags) -> Result<(), String> {
        // Before everything is loaded, nothing was acknowledged.
        let Some((durability, _)) = self.kept.as_ref().filter(|(durability, _)| durability.is_loaded()) else {
            return Ok(());
        };
        let logged = durability.sync_log().map_err(|error| error.to_string());
        if !flags.save.unwrap_or_else(|| durability.saves_at_end()) {
            return logged.map(|_| ());
        }
        let task = durability.schedule(Cause::Shutdown);
        while task.outcome().is_none() {
            if self.is_over() || self.host.part::<admin::Needed, ShutdownRequest>().is_called_off() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        match (task.outcome(), logged) {
            // The log has it all.
            (Some(Err(why)), Ok(true)) if flags.save.is_none() => {
                self.warn(&format!("no checkpoint at the end: {why}; the command log is durable, and nothing is lost"));
                Ok(())
            }
            (Some(Err(why)), _) => Err(format!("the checkpoint failed: {why}")),
            _ => Ok(()),
        }
    }

    /// Whether the server has ended otherwise: a worker has failed.
    fn is_over(&self) -> bool {
        self.host.part::<admin::Needed, ShutdownRequest>().is_closed()
    }

    fn phase(&self, phase: Phase) {
        if let Some((_, tell)) = &self.kept {
            tell.phase(phase);
        }
    }

    fn say(&self, text: &str) {
        if let Some((_, tell)) = &self.kept {
            tell.say(text);
        }
    }

    fn warn(&self, text: &str) {
        if let Some((_, tell)) = &self.kept {
            tell.warn(text);
        }
    }
}

/// What an operator does about a refused end.
const REMEDY: &str = "Mend the cause and stop it again, or give up what is not saved: SHUTDOWN NOSAVE FORCE";
