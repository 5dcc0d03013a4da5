//! FUNCTION in a build without Lua.

use crate::run::ABSENT;
use command::{Ctx, Stop};

macro_rules! refused {
    ($($name:ident)*) => {
        $(
            /// Refuses.
            pub fn $name(_: &mut Ctx<'_>) -> Result<(), Stop> {
                Err(ABSENT)
            }
        )*
    };
}

refused! { load delete flush list dump restore stats }
