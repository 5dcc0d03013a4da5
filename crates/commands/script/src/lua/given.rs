//! The arguments of the script that runs, as its state holds them.

/// Strings that a script is given.
pub type Strings = Given<'static, 'static>;

type Given<'g, 'a> = dyn ExactSizeIterator<Item = &'a [u8]> + 'g;

/// Which of the two a script has asked for.
pub type Asked = [bool; 2];

/// The arguments of the script that runs, and which of their tables there are.
#[derive(Default)]
pub struct Arguments {
    /// Those of which there is no table yet, while a script runs.
    pub strings: [Option<*mut Strings>; 2],
    /// Which tables there are.
    pub are_there: Asked,
    /// Code runs that sees them.
    pub is_script: bool,
}

impl Arguments {
    /// A script begins.
    ///
    /// # Safety
    /// Both are alive, and used by nothing else, until [`Arguments::end`].
    pub unsafe fn begin<'a>(&mut self, keys: &mut Given<'_, 'a>, args: &mut Given<'_, 'a>) {
        // SAFETY: the caller keeps both alive for as long as they are used.
        self.strings = unsafe { [Some(forget_lifetimes(keys)), Some(forget_lifetimes(args))] };
        self.is_script = true;
    }

    /// It has ended.
    pub fn end(&mut self) {
        self.strings = [None; 2];
        self.is_script = false;
    }
}

/// # Safety
/// See [`Arguments::begin`].
unsafe fn forget_lifetimes<'g, 'a: 'g>(strings: &mut Given<'g, 'a>) -> *mut Strings {
    let strings: *mut Given<'g, 'a> = strings;
    // SAFETY: the lifetimes alone differ.
    unsafe { std::mem::transmute::<*mut Given<'g, 'a>, *mut Strings>(strings) }
}
