//! `sort`, `concat`, `insert`, `remove` and `foreachi` of the library `table`: what they do is what Lua's own do, and
//! takes steps.

use crate::lua::library::check_int;
use crate::lua::proxies::keep;
use crate::lua::stack::{Kind, Native, Raise, Stack};

/// What stands in the place of Lua's own functions.
pub const FUNCTIONS: &[(&str, Native)] =
    &[("sort", sort), ("concat", concat), ("insert", insert), ("remove", remove), ("foreachi", for_each)];

/// The length of the table that is the first argument.
fn length(stack: &Stack) -> Result<i32, Raise> {
    stack.check_table(1)?;
    Ok(stack.len(1) as i32)
}

fn optional(stack: &Stack, index: i32, default: i32) -> Result<i32, Raise> {
    match stack.kind(index) {
        Kind::None | Kind::Nil => Ok(default),
        _ => Ok(check_int(stack, index)? as i32),
    }
}

fn concat(stack: &mut Stack) -> Result<i32, Raise> {
    let has_separator = !matches!(stack.kind(2), Kind::None | Kind::Nil);
    if has_separator {
        stack.check_text(2)?;
    }
    stack.check_table(1)?;
    let separator = if has_separator { stack.anchored(2) } else { b"" };
    let first = optional(stack, 3, 1)?;
    let last = match stack.kind(4) {
        Kind::None | Kind::Nil => stack.len(1) as i32,
        _ => check_int(stack, 4)? as i32,
    };
    let start = stack.build();
    let mut index = first;
    while index <= last {
        stack.raw_get_index(1, index);
        if !matches!(stack.kind(-1), Kind::String | Kind::Number) {
            stack.clear_scratch();
            stack.write(b"invalid value (");
            stack.write(stack.kind_name(-1).to_bytes());
            stack.write(b") at index ");
            stack.write_integer(i64::from(index));
            stack.write(b" in table for 'concat'");
            return Err(Raise::Written);
        }
        stack.add_value()?;
        if index == last {
            break;
        }
        stack.add(separator)?;
        index += 1;
    }
    stack.look_at_memory()?;
    stack.push_built(start);
    Ok(1)
}

fn insert(stack: &mut Stack) -> Result<i32, Raise> {
    keep(stack)?;
    let mut end = length(stack)?.wrapping_add(1);
    let position = match stack.top() {
        2 => end,
        3 => {
            let position = check_int(stack, 2)? as i32;
            end = end.max(position);
            let mut index = end;
            while index > position {
                stack.spend(4)?;
                stack.raw_get_index(1, index - 1);
                stack.raw_set_index(1, index);
                index -= 1;
            }
            position
        }
        _ => return Err(Raise::Located(c"wrong number of arguments to 'insert'")),
    };
    stack.raw_set_index(1, position);
    Ok(0)
}

fn remove(stack: &mut Stack) -> Result<i32, Raise> {
    keep(stack)?;
    let end = length(stack)?;
    let position = optional(stack, 2, end)?;
    if position < 1 || position > end {
        return Ok(0);
    }
    stack.raw_get_index(1, position);
    for index in position..end {
        stack.spend(4)?;
        stack.raw_get_index(1, index + 1);
        stack.raw_set_index(1, index);
    }
    stack.push_nil();
    stack.raw_set_index(1, end);
    Ok(1)
}

fn for_each(stack: &mut Stack) -> Result<i32, Raise> {
    let end = length(stack)?;
    if stack.kind(2) != Kind::Function {
        return Err(Raise::Type(2, c"function"));
    }
    for index in 1..=end {
        stack.spend(4)?;
        stack.push_value(2);
        stack.push_number(f64::from(index));
        stack.raw_get_index(1, index);
        stack.call(2, 1);
        if stack.kind(-1) != Kind::Nil {
            return Ok(1);
        }
        stack.pop(1);
    }
    Ok(0)
}

fn sort(stack: &mut Stack) -> Result<i32, Raise> {
    keep(stack)?;
    let end = length(stack)?;
    if !stack.has_room(40) {
        return Err(Raise::Located(c"stack overflow ()"));
    }
    if !matches!(stack.kind(2), Kind::None | Kind::Nil) && stack.kind(2) != Kind::Function {
        return Err(Raise::Type(2, c"function"));
    }
    stack.set_top(2);
    let has_function = stack.kind(2) == Kind::Function;
    Sorter { has_function }.sort(stack, 1, end)?;
    Ok(0)
}

const NO_ORDER: Raise = Raise::Located(c"invalid order function for sorting");

/// Sorts as Lua does, with the same comparisons in the same order: an order function sees no difference.
struct Sorter {
    has_function: bool,
}

impl Sorter {
    fn is_less(&self, stack: &mut Stack, one: i32, other: i32) -> Result<bool, Raise> {
        if !self.has_function {
            let bytes = match (stack.string(one), stack.string(other)) {
                (Some(one), Some(other)) => one.len().min(other.len()),
                _ => 0,
            };
            stack.spend_bytes(bytes)?;
            return Ok(stack.is_less(one, other));
        }
        stack.spend(4)?;
        stack.push_value(2);
        stack.push_value(one - 1);
        stack.push_value(other - 2);
        stack.call(2, 1);
        let is_less = stack.truth(-1);
        stack.pop(1);
        Ok(is_less)
    }

    fn sort(&self, stack: &mut Stack, mut low: i32, mut high: i32) -> Result<(), Raise> {
        while low < high {
            self.order(stack, low, high, (-1, -2))?;
            if high - low == 1 {
                break;
            }
            // As Lua: the sum may overflow, which no table is long enough for.
            let middle = low.wrapping_add(high) / 2;
            stack.raw_get_index(1, middle);
            stack.raw_get_index(1, low);
            if self.is_less(stack, -2, -1)? {
                set_both(stack, middle, low);
            } else {
                stack.pop(1);
                stack.raw_get_index(1, high);
                if self.is_less(stack, -1, -2)? {
                    set_both(stack, middle, high);
                } else {
                    stack.pop(2);
                }
            }
            if high - low == 2 {
                break;
            }
            let place = self.part(stack, low, high, middle)?;
            // The smaller half first: the depth is that of the logarithm.
            let (from, to);
            if place - low < high - place {
                (from, to, low) = (low, place - 1, place + 1);
            } else {
                (from, to, high) = (place + 1, high, place - 1);
            }
            self.sort(stack, from, to)?;
        }
        Ok(())
    }

    /// Swaps the elements at two places where the second is less.
    fn order(&self, stack: &mut Stack, low: i32, high: i32, (one, other): (i32, i32)) -> Result<(), Raise> {
        stack.raw_get_index(1, low);
        stack.raw_get_index(1, high);
        if self.is_less(stack, one, other)? {
            set_both(stack, low, high);
        } else {
            stack.pop(2);
        }
        Ok(())
    }

    /// Moves what is less than the middle element below it, and the rest above: its place.
    fn part(&self, stack: &mut Stack, low: i32, high: i32, middle: i32) -> Result<i32, Raise> {
        stack.raw_get_index(1, middle);
        stack.push_value(-1);
        stack.raw_get_index(1, high - 1);
        set_both(stack, middle, high - 1);
        let (mut up, mut down) = (low, high - 1);
        loop {
            loop {
                up += 1;
                stack.raw_get_index(1, up);
                if !self.is_less(stack, -1, -2)? {
                    break;
                }
                if up > high {
                    return Err(NO_ORDER);
                }
                stack.pop(1);
            }
            loop {
                down -= 1;
                stack.raw_get_index(1, down);
                if !self.is_less(stack, -3, -1)? {
                    break;
                }
                if down < low {
                    return Err(NO_ORDER);
                }
                stack.pop(1);
            }
            if down < up {
                stack.pop(3);
                break;
            }
            set_both(stack, up, down);
        }
        stack.raw_get_index(1, high - 1);
        stack.raw_get_index(1, up);
        set_both(stack, high - 1, up);
        Ok(up)
    }
}

/// Sets the elements at two places to the values on top: the first to the upper one.
fn set_both(stack: &mut Stack, one: i32, other: i32) {
    stack.raw_set_index(1, one);
    stack.raw_set_index(1, other);
}
