//! An item: a string with flags, a CAS id and an expiration.

use crate::arguments::Lifetime;
use crate::sticky;
use command::{Ctx, Stop};
use engine::{Entry, Fields, Key, NotifyClass, Type, Value};
use proto::ReplyBuffer;
use types::string::{Condition, Expiration};

/// The key holds something that is no item.
pub const TYPE_MISMATCH: Stop = Stop::error("TYPE_MISMATCH");

/// Sticky items have no more room.
pub const NO_ROOM: &str = "SERVER_ERROR out of memory storing object";

/// What an item has besides its data.
pub struct Attributes {
    /// Flags of the client, which the server only keeps.
    pub flags: u32,
    /// How long it lasts.
    pub lifetime: Lifetime,
    /// What meta commands have marked it with.
    pub marks: Marks,
}

/// Marks of meta commands. They are kept in the attributes of a string, which has no others: one byte of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// It is to be renewed.
    pub is_stale: bool,
    /// A client is to renew it.
    pub is_won: bool,
}

impl Marks {
    /// Neither.
    pub const NONE: Self = Self { is_stale: false, is_won: false };
    const STALE: u8 = 1;
    const WON: u8 = 2;

    /// The marks among the fields of an item.
    pub fn of(fields: &Fields<'_>) -> Self {
        let bits = fields.attributes.first().copied().unwrap_or(0);
        Self { is_stale: bits & Self::STALE != 0, is_won: bits & Self::WON != 0 }
    }

    fn attributes(self) -> &'static [u8] {
        match (self.is_stale, self.is_won) {
            (false, false) => &[],
            (true, false) => &[Self::STALE],
            (false, true) => &[Self::WON],
            (true, true) => &[Self::STALE | Self::WON],
        }
    }
}

/// Writes an item; nothing for an entry of another type.
pub fn reply(reply: &mut ReplyBuffer, key: &[u8], entry: &Entry<'_>, id: Option<u64>) {
    if entry.kind != Type::String {
        return;
    }
    let flags = if entry.fields.is_none() { 0 } else { entry.fields.get().flags };
    match entry.value {
        Value::Shared(shared) => reply.item_shared(key, flags, id, shared.clone()),
        value => reply.item(key, flags, id, value.bytes()),
    }
}

/// Writes the data of an item.
pub fn reply_data(reply: &mut ReplyBuffer, entry: &Entry<'_>) {
    match entry.value {
        Value::Shared(shared) => reply.data_shared(shared.clone()),
        value => reply.raw_line(value.bytes()),
    }
}

/// Writes the item under the first key with its CAS id, which it is given now if it has none.
pub fn get_with_id(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    // The id first: it is no change, and what is read afterwards is what it stands for.
    let id = ctx.ks.cas_id(&key)?;
    let entry = ctx.ks.read(&key)?;
    if let Some(entry) = &entry {
        reply(ctx.reply, key.bytes, entry, id);
    }
    Ok(())
}

/// The CAS id of the item under the key. An item that had none is given one here, which no client can know yet.
pub fn id(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<u64>, Stop> {
    Ok(ctx.ks.cas_id(key)?)
}

/// The longest data of an item.
pub fn bytes_max(ctx: &Ctx<'_>) -> usize {
    let bytes = ctx.host.configuration.current().memcached_item_bytes_max;
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Stores an item, whatever was there.
pub fn store(ctx: &mut Ctx<'_>, key: &Key<'_>, value: Value<'_>, attributes: &Attributes) -> Result<(), Stop> {
    let Lifetime { expiration, is_sticky } = attributes.lifetime;
    if is_sticky {
        let bytes = key.bytes.len().saturating_add(value.bytes().len());
        sticky::check_room(ctx, bytes, NO_ROOM)?;
    }
    let fields =
        Fields { flags: attributes.flags, is_sticky, attributes: attributes.marks.attributes(), ..Fields::default() };
    let has_fields = fields != Fields::default();
    let expire_at = match expiration {
        Expiration::At(at) if at > ctx.now() && has_fields => Some(at),
        Expiration::Never if has_fields => None,
        // Without flags it is a string like those of other clients. One that has expired leaves nothing.
        expiration => {
            types::string::set(ctx.ks, key, value, Condition::Always, expiration)?;
            return Ok(());
        }
    };
    types::fields::set(ctx.ks, key, value, expire_at, &fields);
    if expire_at.is_some() {
        ctx.ks.notify(NotifyClass::GENERIC, "expire", key);
    }
    Ok(())
}

/// Replaces the data of an item that is there. Its flags, its expiration and its marks stay.
pub fn rewrite(ctx: &mut Ctx<'_>, key: &Key<'_>, data: &[u8]) -> Result<(), Stop> {
    rewrite_with(ctx, key, data, |fields| fields.attributes)
}

/// Replaces the data of an item that is there by longer data, which has no marks. Flags and expiration stay.
pub fn extend(ctx: &mut Ctx<'_>, key: &Key<'_>, data: &[u8]) -> Result<(), Stop> {
    rewrite_with(ctx, key, data, |_| &[])
}

fn rewrite_with(
    ctx: &mut Ctx<'_>,
    key: &Key<'_>,
    data: &[u8],
    attributes: for<'f> fn(&Fields<'f>) -> &'f [u8],
) -> Result<(), Stop> {
    let Some(entry) = ctx.ks.peek(key)? else { return Ok(()) };
    let (expire_at, fields) = (entry.expire_at, entry.fields.to_owned());
    let fields = fields.get().get();
    let fields = Fields { cas: 0, attributes: attributes(&fields), ..fields };
    if fields == Fields::default() {
        types::string::set(ctx.ks, key, Value::Bytes(data), Condition::Always, Expiration::Keep)?;
        return Ok(());
    }
    types::fields::set(ctx.ks, key, Value::Bytes(data), expire_at, &fields);
    Ok(())
}

/// Gives the item these marks and no others.
pub fn mark(ctx: &mut Ctx<'_>, key: &Key<'_>, marks: Marks) -> Result<(), Stop> {
    let Some(entry) = ctx.ks.peek(key)? else { return Ok(()) };
    let fields = entry.fields.to_owned();
    types::fields::replace(ctx.ks, key, &Fields { attributes: marks.attributes(), ..fields.get().get() })?;
    Ok(())
}

/// Marks the item as stale, with another id, and for another client to win.
pub fn make_stale(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<(), Stop> {
    let Some(entry) = ctx.ks.peek_value(key)? else { return Ok(()) };
    let (data, expire_at, fields) = (entry.value.bytes().to_vec(), entry.expire_at, entry.fields.to_owned());
    let marks = Marks { is_stale: true, is_won: false };
    let fields = Fields { attributes: marks.attributes(), cas: 0, ..fields.get().get() };
    types::fields::set(ctx.ks, key, Value::Bytes(&data), expire_at, &fields);
    Ok(())
}
