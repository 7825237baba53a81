//! `Debug` for types whose fields need not be `Debug`, and `Display` in plain words.

use std::fmt;

/// `Debug`: the name of a type, after its generic parameters, and the values to show. What is shown
/// `if` it is `Some` may take a lock, which is released before the writer runs: that is user code.
///
/// ```text
/// shows!([T] Turns<'_, T>, |turns| left: turns.len());
/// shows!(Gate, |gate|; if counts: gate.try_counts());
/// ```
macro_rules! shows {
    ($(#[$doc:meta])* $([$($bounds:tt)*])? $name:ident $(<$($arg:tt),*>)?, |$this:pat_param|
     $($field:ident: $value:expr),* $(; if $option:ident: $known:expr)?) => {
        $(#[$doc])*
        impl $(<$($bounds)*>)? std::fmt::Debug for $name $(<$($arg),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                $(let $option = $known;)?
                let mut shown = f.debug_struct(stringify!($name));
                $(shown.field(stringify!($field), &$value);)*
                $(if let Some(known) = &$option {
                    shown.field(stringify!($option), known);
                })?
                shown.finish_non_exhaustive()
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
    ($(#[$doc:meta])* $name:ident { $($form:pat => $text:literal),* $(,)? }) => {
        $(#[$doc])*
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($form => $crate::shown::pad(f, format_args!($text))),*
                }
            }
        }
    };
}

/// Writes a short text, padded as the format asks.
pub(crate) fn pad(f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>) -> fmt::Result {
    match (text.as_str(), f.width().or(f.precision())) {
        (Some(text), _) => f.pad(text),
        (None, None) => f.write_fmt(text),
        (None, Some(_)) => f.pad(&text.to_string()),
    }
}

/// [`says`] for a name, which `Debug` shows after its type's.
macro_rules! id_says {
    ($(#[$doc:meta])* $name:ident $says:tt) => {
        crate::shown::says!($(#[$doc])* $name $says);
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
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

pub(crate) use {error_says, id_says, says, shows};
