//! `FIELDS numfields field ...`: how commands about times of fields name them. It ends the arguments.

use crate::error::{self, Stop};
use crate::{Args, Ctx};

/// The number of fields is wrong.
const WRONG_NUMBER: Stop =
    Stop::error("ERR numfields should be greater than 0 and match the provided number of fields");

/// The place of the word FIELDS, at `from` or after; what is in between are options.
pub(super) fn find(ctx: &Ctx<'_>, from: usize) -> Result<usize, Stop> {
    let last = ctx.args.len().saturating_sub(1);
    (from..last).find(|index| ctx.is_word(*index, "fields")).ok_or(WRONG_NUMBER)
}

/// The fields after the word at `index`, each followed by its value if `width` is 2.
pub(super) fn read<'a>(ctx: &Ctx<'a>, index: usize, width: i64) -> Result<Fields<'a>, Stop> {
    read_or(ctx, index, width, WRONG_NUMBER)
}

/// [`read`] where the word has to be the argument at `index`.
pub(super) fn read_at<'a>(ctx: &Ctx<'a>, index: usize) -> Result<Fields<'a>, Stop> {
    require_word(ctx, index)?;
    read(ctx, index, 1)
}

/// [`read_at`] where a wrong number is a syntax error.
pub(super) fn read_strictly<'a>(ctx: &Ctx<'a>, index: usize) -> Result<Fields<'a>, Stop> {
    require_word(ctx, index)?;
    read_or(ctx, index, 1, error::SYNTAX)
}

fn require_word(ctx: &Ctx<'_>, index: usize) -> Result<(), Stop> {
    if ctx.is_word(index, "fields") { Ok(()) } else { Err(error::SYNTAX) }
}

fn read_or<'a>(ctx: &Ctx<'a>, index: usize, width: i64, wrong: Stop) -> Result<Fields<'a>, Stop> {
    let number = ctx.integer(index.saturating_add(1))?;
    let from = index.saturating_add(2);
    let given = ctx.args.len().saturating_sub(from) as i64;
    if number <= 0 || number.checked_mul(width) != Some(given) {
        return Err(wrong);
    }
    Ok(Fields { args: ctx.args, from })
}

/// The fields of one request.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    args: Args<'a>,
    from: usize,
}

impl<'a> Fields<'a> {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.args.len().saturating_sub(self.from)
    }

    /// Each field.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.args.from(self.from)
    }

    /// Each field with its value.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        super::hash::pairs(self.args, self.from)
    }
}
