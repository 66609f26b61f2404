//! The kernels' sources: each module is one `.cu` file, compiled as a whole at first use, and the headers that
//! it may include. The texts are part of the program.

/// A `.cu` file.
#[derive(Debug)]
pub struct Module {
    /// Its name under `kernels/`.
    pub name: &'static str,
    /// Its text.
    pub source: &'static str,
    /// Its kernels.
    pub kernels: &'static [&'static str],
    /// The lowest compute capability it compiles for; `(9, 0)` with `exact`: tensor cores of Hopper.
    pub needs: (u32, u32),
    /// Whether it compiles for that architecture alone.
    pub exact: bool,
}

/// A text that modules include, by its name under `kernels/`.
pub type Header = (&'static str, &'static str);

macro_rules! headers {
    ($($name:literal)*) => {
        /// What modules may include.
        pub const HEADERS: &[Header] = &[
            $(($name, include_str!(concat!("../kernels/", $name)))),*
        ];
    };
}
headers! { "prelude.cuh" }

macro_rules! modules {
    ($($(#[$doc:meta])* $id:ident = $name:literal $([$major:literal, $minor:literal, $exact:literal])?:
        $($kernel:ident)*;)*) => {
        $(
            $(#[$doc])*
            pub static $id: Module = Module {
                name: $name,
                source: include_str!(concat!("../kernels/", $name)),
                kernels: &[$(stringify!($kernel)),*],
                needs: modules!(@needs $($major, $minor)?),
                exact: modules!(@exact $($exact)?),
            };
        )*
        /// All of them.
        pub static ALL: &[&Module] = &[$(&$id),*];
    };
    (@needs $major:literal, $minor:literal) => { ($major, $minor) };
    (@needs) => { (8, 0) };
    (@exact $exact:literal) => { $exact };
    (@exact) => { false };
}
modules! {
    /// Small operations by which the runtime is tested.
    BASIC = "basic.cu": fill_u32 add_f32 reverse_blocks warp_sum;
}
