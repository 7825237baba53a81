//! `Debug` of types that hold what need not be `Debug`.

/// The name of a type, and the values that are said of it.
///
/// ```text
/// shows!(impl<T> Turns<'_, T>, |turns| left: turns.len());
/// ```
macro_rules! shows {
    ($(#[$doc:meta])* impl<$($g:ident),*> $name:ident<$($arg:tt),*>, |$this:pat_param|
     $($field:ident: $value:expr),*) => {
        $(#[$doc])*
        impl<$($g),*> std::fmt::Debug for $name<$($arg),*> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use shows;
