//! `server.register_function`: what a library registers while it is loaded.

use crate::lua::install::reference;
use crate::lua::registered::Registered;
use crate::lua::stack::{Kind, Raise, Stack};
use crate::shebang::Flags;

/// An error that names no place, as a table.
fn refuse(stack: &mut Stack, text: &str) -> Raise {
    stack.push_table(0, 1);
    stack.push_str(text);
    stack.raw_set_field(-2, "err");
    Raise::Top
}

/// `register_function(name, callback)`, or with a table of named arguments.
pub fn register_function(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.with_home(|home| home.registered.is_none()) {
        return Err(refuse(stack, "ERR server.register_function can only be called on FUNCTION LOAD command"));
    }
    match stack.top() {
        1 if stack.kind(1) == Kind::Table => take_named(stack)?,
        1 => {
            let text = "ERR calling server.register_function with a single argument is only applicable to Lua table \
                        (representing named arguments).";
            return Err(refuse(stack, text));
        }
        2 => {
            if !matches!(stack.kind(1), Kind::String | Kind::Number) {
                return Err(refuse(stack, "ERR first argument to server.register_function must be a string"));
            }
            if stack.kind(2) != Kind::Function {
                return Err(refuse(stack, "ERR second argument to server.register_function must be a function"));
            }
            // Name, description, callback.
            stack.push_nil();
            stack.insert(2);
            stack.with_home(|home| home.registered_flags = Flags::of_functions());
        }
        _ => return Err(refuse(stack, "ERR wrong number of arguments to server.register_function")),
    }
    // Converts a number in place; from here on nothing of this frame raises but `reference`.
    let _ = stack.text(1);
    let _ = stack.text(2);
    let function = reference(stack);
    let name = stack.string(1).unwrap_or_default();
    let description = stack.string(2);
    stack.with_home(|home| {
        let (name, description) = (name.to_vec(), description.map(<[u8]>::to_vec));
        let flags = home.registered_flags;
        home.registered.get_or_insert_default().push(Registered { name, function, description, flags });
    });
    Ok(0)
}

/// Replaces the table of named arguments by name, description or `nil`, and callback.
fn take_named(stack: &mut Stack) -> Result<(), Raise> {
    stack.with_home(|home| home.registered_flags = Flags::of_functions());
    // 1: the table; 2: name; 3: description; 4: callback.
    (0..3).for_each(|_| stack.push_nil());
    stack.push_nil();
    while stack.next(1) {
        let place = match stack.string(-2).and_then(Field::named) {
            Some(Field::Name) => {
                check(stack, is_text, "ERR function_name argument given to server.register_function must be a string")?;
                2
            }
            Some(Field::Description) => {
                check(stack, is_text, "ERR description argument given to server.register_function must be a string")?;
                3
            }
            Some(Field::Callback) => {
                let is_function = |kind| kind == Kind::Function;
                let text = "ERR callback argument given to server.register_function must be a function";
                check(stack, is_function, text)?;
                4
            }
            Some(Field::Flags) => {
                let text = "ERR flags argument to server.register_function must be a table representing function flags";
                check(stack, |kind| kind == Kind::Table, text)?;
                take_flags(stack)?;
                stack.pop(1);
                continue;
            }
            None => return Err(refuse(stack, "ERR unknown argument given to server.register_function")),
        };
        stack.replace(place);
    }
    if stack.kind(2) == Kind::Nil {
        return Err(refuse(stack, "ERR server.register_function must get a function name argument"));
    }
    if stack.kind(4) == Kind::Nil {
        return Err(refuse(stack, "ERR server.register_function must get a callback argument"));
    }
    stack.remove(1);
    Ok(())
}

/// The named arguments.
#[derive(Clone, Copy)]
enum Field {
    Name,
    Description,
    Callback,
    Flags,
}

impl Field {
    fn named(name: &[u8]) -> Option<Self> {
        let fields = [
            ("function_name", Self::Name),
            ("description", Self::Description),
            ("callback", Self::Callback),
            ("flags", Self::Flags),
        ];
        let found = fields.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        found.map(|(_, field)| *field)
    }
}

fn is_text(kind: Kind) -> bool {
    matches!(kind, Kind::String | Kind::Number)
}

fn check(stack: &mut Stack, is_right: impl Fn(Kind) -> bool, text: &str) -> Result<(), Raise> {
    if is_right(stack.kind(-1)) { Ok(()) } else { Err(refuse(stack, text)) }
}

/// Reads the flags of the table on top.
fn take_flags(stack: &mut Stack) -> Result<(), Raise> {
    for index in 1.. {
        stack.raw_get_index(-1, index);
        if stack.kind(-1) == Kind::Nil {
            stack.pop(1);
            return Ok(());
        }
        let is_known = match stack.string(-1) {
            Some(name) => stack.with_home(|home| home.registered_flags.set(name)),
            None => false,
        };
        stack.pop(1);
        if !is_known {
            return Err(refuse(stack, "ERR unknown flag given"));
        }
    }
    Ok(())
}
