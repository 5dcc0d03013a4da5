//! Lists that are long: elements are looked for by another thread, and what is given are pieces.

use crate::Ctx;
use crate::error::Stop;
use crate::work::reply::{LongReply, PIECE_BYTES};
use crate::work::thread::Operand;
use engine::{Encoding, Key, SharedBig, Type, Value};
use proto::ReplyBuffer;
use types::collection::Maker;
use types::list::{self, End, Removed, Search};
use value::list::View;
use value::{Stored, reaper};

/// Elements of a long list that are looked at before it is given to another thread: what is sought mostly is near an
/// end.
const LOOKED_AT: u64 = 1024;

/// When at least this many elements are popped, they are popped from a tree as it was, and written in pieces.
const POPPED_MIN: u64 = 512;

/// The tree under the key, shared, if what is there is a list that is one. Leaves no trace.
fn peek_tree(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<SharedBig>, Stop> {
    let entry = ctx.ks.peek(key)?.filter(|entry| entry.kind == Type::List);
    Ok(entry.and_then(|entry| if let Value::Big(tree) = entry.value { Some(tree.clone()) } else { None }))
}

fn view(tree: &SharedBig) -> View<'_> {
    View::of(Encoding::BIG, Stored::Big(tree))
}

/// The indexes of elements equal to `element`; of a list that is absent none.
pub(super) fn positions(ctx: &mut Ctx<'_>, key: &Key<'_>, element: &[u8], search: Search) -> Result<Vec<u64>, Stop> {
    let mut found = Vec::new();
    let tree = peek_tree(ctx, key)?;
    let near = Search { compared_max: if tree.is_some() { LOOKED_AT } else { 0 }, ..search };
    let Some(tree) = tree.filter(|_| search.compared_max == 0 || search.compared_max > LOOKED_AT) else {
        if let Some(list) = list::view(ctx.ks, key)? {
            list::positions(&list, element, &search, |index| found.push(index));
        }
        return Ok(found);
    };
    list::positions(&view(&tree), element, &near, |index| found.push(index));
    if search.count == 0 || (found.len() as u64) < search.count {
        let (operand, element) = (Operand::Tree(tree.clone()), element.to_vec());
        found = ctx.made_elsewhere(operand, move || {
            let mut found = Vec::new();
            list::positions(&view(&tree), &element, &search, |index| found.push(index));
            found
        })?;
    }
    // A client's read.
    list::view(ctx.ks, key)?;
    Ok(found)
}

/// Where the first element is that is equal to `pivot`: asked for once the list was looked at, and is there.
pub(super) fn finding<'p>(
    ctx: &mut Ctx<'_>,
    key: &Key<'_>,
    pivot: &'p [u8],
) -> Result<impl FnOnce(&View<'_>) -> Option<u64> + use<'p>, Stop> {
    let mut found = None;
    if let Some(tree) = peek_tree(ctx, key)?
        && !view(&tree).forward(0).take(LOOKED_AT as usize).any(|element| element == pivot)
    {
        let (operand, pivot) = (Operand::Tree(tree.clone()), pivot.to_vec());
        found = Some(ctx.made_elsewhere(operand, move || list::find(&view(&tree), &pivot))?);
    }
    Ok(move |list: &View<'_>| found.unwrap_or_else(|| list::find(list, pivot)))
}

/// LREM in a tree; `None`, and nothing is done, when it is to be done as in any list.
pub(super) fn remove(ctx: &mut Ctx<'_>, key: &Key<'_>, count: i64, element: &[u8]) -> Result<Option<u64>, Stop> {
    let Some(tree) = peek_tree(ctx, key)? else { return Ok(None) };
    if count != 0 {
        let (limit, mut near) = (count.unsigned_abs(), 0u64);
        let search = Search { skip: 0, is_backward: count < 0, count: limit, compared_max: LOOKED_AT };
        list::positions(&view(&tree), element, &search, |_| near = near.saturating_add(1));
        if near == limit {
            return Ok(None);
        }
    }
    let (maker, operand, element) = (Maker::of(ctx.ks), Operand::Tree(tree.clone()), element.to_vec());
    let removed = ctx.made_elsewhere(operand, move || Removed::of(&maker, &tree, count, &element))?;
    // A client's read.
    ctx.ks.read_to_edit(key)?;
    Ok(Some(removed.store(ctx.ks, key)))
}

/// Pops many elements of a tree, which are written in pieces after what `write_header` writes. False, with nothing
/// done, when they are to be popped at once.
pub(super) fn pop(
    ctx: &mut Ctx<'_>,
    key: &Key<'_>,
    end: End,
    count: u64,
    write_header: impl FnOnce(&mut ReplyBuffer),
) -> Result<bool, Stop> {
    if count < POPPED_MIN || !ctx.may_reply_in_pieces() {
        return Ok(false);
    }
    let Some(tree) = peek_tree(ctx, key)? else { return Ok(false) };
    ctx.ks.read_to_edit(key)?;
    let len = view(&tree).len();
    let count = count.min(len);
    list::pop_many(ctx.ks, key, end, count);
    write_header(ctx.reply);
    ctx.reply.array(count as usize);
    ctx.reply_tree(tree, 0..count as usize, move |encoding, stored, places, reply| {
        let (list, from) = (View::of(encoding, stored), places.start as u64);
        match end {
            End::Head => list.forward(from).take(places.len()).for_each(|element| reply.bulk(element)),
            End::Tail => {
                let last = len.saturating_sub(1).saturating_sub(from);
                list.backward(last).take(places.len()).for_each(|element| reply.bulk(element));
            }
        }
    })?;
    Ok(true)
}

/// Replies indexes as an array.
pub(super) fn reply_positions(ctx: &mut Ctx<'_>, positions: Vec<u64>) -> Result<(), Stop> {
    ctx.reply.array(positions.len());
    ctx.reply_long(Positions { positions, told: 0 })
}

/// Indexes on their way to a client.
struct Positions {
    positions: Vec<u64>,
    told: usize,
}

/// Indexes looked at between two looks at the size of a piece.
const TOLD_AT_ONCE: usize = 256;

impl LongReply for Positions {
    fn write_piece(&mut self, reply: &mut ReplyBuffer) -> bool {
        let start = reply.len();
        while let Some(rest) = self.positions.get(self.told..).filter(|rest| !rest.is_empty()) {
            if reply.len().saturating_sub(start) >= PIECE_BYTES {
                return true;
            }
            let some = rest.iter().take(TOLD_AT_ONCE);
            self.told = self.told.saturating_add(some.len());
            some.for_each(|index| reply.integer(index.cast_signed()));
        }
        false
    }

    fn held_bytes(&self) -> usize {
        self.positions.capacity().saturating_mul(size_of::<u64>())
    }
}

impl Drop for Positions {
    fn drop(&mut self) {
        if self.held_bytes() > PIECE_BYTES {
            reaper::free(Box::new(std::mem::take(&mut self.positions)));
        }
    }
}
