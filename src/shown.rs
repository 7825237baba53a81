//! `Debug` for types whose fields need not be `Debug`, and `Display` in plain words.

/// `Debug`: the name of a type, after its generic parameters, and the values to show.
///
/// ```text
/// shows!([T] Turns<'_, T>, |turns| left: turns.len());
/// ```
macro_rules! shows {
    ($(#[$doc:meta])* $([$($bounds:tt)*])? $name:ident $(<$($arg:tt),*>)?, |$this:pat_param|
     $($field:ident: $value:expr),*) => {
        $(#[$doc])*
        impl $(<$($bounds)*>)? std::fmt::Debug for $name $(<$($arg),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}

/// `Display`: one line of text for each pattern, which may use the names that the pattern binds.
///
/// ```text
/// says!(Limit {
///     Self::AtMost(most) => "at most {most}",
///     Self::Unlimited => "unlimited",
/// });
/// ```
macro_rules! says {
    ($name:ident { $($form:pat => $text:literal),* $(,)? }) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($form => write!(f, $text)),*
                }
            }
        }
    };
}

/// [`says`] for an error.
macro_rules! error_says {
    ($name:ident $says:tt) => {
        crate::shown::says!($name $says);
        impl std::error::Error for $name {}
    };
}

pub(crate) use {error_says, says, shows};
