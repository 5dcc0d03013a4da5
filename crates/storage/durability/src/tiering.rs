//! The tier next to the data directory: opened before data is loaded, synced before a checkpoint names it, and freed
//! after the checkpoints that may name it.

pub(crate) mod open;

use crate::cleaner::Cleaner;
use crate::error::DurabilityError;
use crate::keeper::Durability;
use crate::scrubber::Scrubber;
use checkpoint::{Manifest, ManifestFile, SetId, TierInfo};
use engine::ValueTier;
use open::OpenTier;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tier::{Tier, TierId};

/// The manifest's word about an open tier.
fn info_of(tier: &Tier) -> TierInfo {
    TierInfo { id: tier.id().0, dir: tier.dir().as_os_str().as_bytes().to_vec() }
}

impl Durability {
    /// The tier, if the settings have one, once a start has opened it.
    pub fn tier(&self) -> Option<&Arc<Tier>> {
        self.tier.get().map(|open| &open.tier)
    }

    /// Opens the tier that the settings name, and puts it under the store.
    pub(crate) fn open_tier(&self, manifest: Option<&Manifest>) -> Result<(), DurabilityError> {
        let known = manifest.and_then(|manifest| manifest.tier.as_ref());
        let Some(policy) = self.policy().tier else {
            return match known {
                None => Ok(()),
                Some(known) => Err(DurabilityError::TierNeeded { path: known.path().to_owned() }),
            };
        };
        let mut id = [0; 16];
        self.parts.entropy.rng().fill(&mut id);
        let expected = known.map(|known| TierId(known.id));
        let tell = self.parts.tell.clone();
        let (fs, say) = (self.parts.fs.clone(), move |text: &str| tell.warn(text));
        // Tools find it by the manifest, wherever they are started.
        let dir = std::path::absolute(&policy.dir).unwrap_or_else(|_| policy.dir.clone());
        let tier = Tier::open(fs, &dir, expected, TierId(id), policy.options, say)?;
        tier.set_logged(self.wants_log());
        let under_store: Arc<dyn ValueTier> = tier.clone();
        self.parts.store.attach_tier(&under_store);
        let (store, tell) = (self.parts.store.clone(), self.parts.tell.clone());
        let scrubber =
            Scrubber { tier: tier.clone(), store: store.clone(), tell: tell.clone(), seconds: AtomicU64::new(0) };
        scrubber.set_interval(policy.scrub_seconds);
        let scrubber = Arc::new(scrubber);
        let cleaner = Arc::new(Cleaner { tier: tier.clone(), store, tell });
        let mut open = OpenTier { tier: tier.clone(), cleaner: cleaner.clone(), scrubber, threads: Vec::new() };
        let writer = tier.clone();
        open.start("tier", move || writer.run())?;
        if policy.has_cleaner {
            open.start("tier-cleaner", move || cleaner.run())?;
            let scrubber = open.scrubber.clone();
            open.start("tier-scrub", move || scrubber.run())?;
        }
        let figures = tier.figures();
        self.parts.tell.say(&format!(
            "tier in {}: {} segments of {} bytes, {}",
            dir.display(),
            figures.segments,
            figures.bytes,
            tier.medium()
        ));
        if tier.delays() != vfs::Delays::NONE {
            self.parts.tell.warn(&format!("the tier is slower than its medium, for experiments: {}", tier.delays()));
        }
        let _ = self.tier.set(open);
        Ok(())
    }

    /// Has the manifest name the tier. Before clients are served, so before a checkpoint names addresses.
    pub(crate) fn name_tier(&self, manifest: &mut ManifestFile) -> Result<(), DurabilityError> {
        let Some(tier) = self.tier() else { return Ok(()) };
        let info = Some(info_of(tier));
        if manifest.current().tier != info {
            let next = Manifest { tier: info, ..manifest.current().clone() };
            manifest.commit(&self.dir, next)?;
        }
        Ok(tier.named()?)
    }

    /// All entries are loaded: what no entry has now is free once the checkpoints of before are gone.
    pub(crate) fn count_tier(&self, manifest: &ManifestFile) {
        let Some(tier) = self.tier() else { return };
        let manifest = manifest.current();
        tier.loaded(manifest.newest().map_or(0, |set| set.set.0));
        self.retire_segments(manifest);
    }

    /// A checkpoint is about to make its cut.
    pub(crate) fn begin_set_on_tier(&self, set: SetId) {
        if let Some(tier) = self.tier() {
            tier.begin_set(set.0);
        }
    }

    /// Makes durable what a checkpoint names.
    pub(crate) fn sync_tier(&self) -> Result<(), DurabilityError> {
        Ok(self.tier().map_or(Ok(()), |tier| tier.sync())?)
    }

    /// Removes segments that neither entries nor retained checkpoints have.
    pub(crate) fn retire_segments(&self, manifest: &Manifest) {
        let Some(tier) = self.tier() else { return };
        if let Err(error) = tier.retire(manifest.sets.first().map(|set| set.set.0)) {
            self.parts
                .tell
                .warn(&format!("segments of the tier that are not needed any more could not be removed: {error}"));
        }
    }
}
