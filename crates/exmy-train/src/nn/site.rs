//! Where a product happens: which linear operator of which layer, which of its three products,
//! which operand.
//!
//! A linear operator `Y = X Wᵀ` has three products (notation of "Pretraining Large Language Models
//! with NVFP4", arXiv 2509.25149, figure 5): [`Product::Forward`] `Y = X Wᵀ` (fprop),
//! [`Product::GradInput`] `dX = dY W` (dgrad) and [`Product::GradWeight`] `dW = dYᵀ X` (wgrad). Each
//! reads two of the three [`Operand`]s, so a layer has six places at which a tensor may be
//! quantized. The names below are the one textual form of recipes, records and plots.

use std::fmt;
use std::str::FromStr;

use exmy::quantizer::Axis;
use exmy::text::UnknownName;

/// A closed set of names: the enum, its words, and both directions of the conversion.
macro_rules! names {
    ($(#[$meta:meta])* $name:ident, $kind:literal {
        $($(#[$doc:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them, in their written order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word recipes and records use.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Position in [`ALL`](Self::ALL): the coordinate that enters a random stream.
            pub const fn index(self) -> usize {
                self as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(word: &str) -> Result<Self, UnknownName> {
                const FORMS: &str = concat!($(" ", $word),+).trim_ascii_start();
                let unknown = || UnknownName::new($kind, word, [$($word),+], FORMS);
                Self::ALL.iter().copied().find(|one| one.name() == word).ok_or_else(unknown)
            }
        }
    };
}

names! {
    /// A linear operator of a model, by the name its weight has in Hugging Face's Llama and in
    /// Flash Linear Attention's GLA. New ones go to the end: the position enters random streams.
    Operator, "linear operator" {
        /// Queries.
        Q = "q_proj",
        /// Keys.
        K = "k_proj",
        /// Values.
        V = "v_proj",
        /// Output of the attention, back onto the residual stream.
        O = "o_proj",
        /// Gate of a gated MLP.
        Gate = "gate_proj",
        /// Into the MLP.
        Up = "up_proj",
        /// Out of the MLP, back onto the residual stream.
        Down = "down_proj",
        /// From the last norm to the logits.
        Head = "lm_head",
        /// Output gate of gated linear attention.
        OutputGate = "g_proj",
        /// First factor of the low-rank decay gate of gated linear attention, onto its rank.
        DecayDown = "gk_proj.0",
        /// Second factor of the decay gate, from its rank to the keys' width.
        DecayUp = "gk_proj.1",
        /// Gate of a gated teacher of the student-teacher proxy.
        TeacherGate = "teacher.gate_proj",
        /// Into a block of the proxy's teacher.
        TeacherUp = "teacher.up_proj",
        /// Out of a block of the proxy's teacher.
        TeacherDown = "teacher.down_proj",
    }
}

names! {
    /// One of the three products of a linear operator.
    Product, "product" {
        /// `Y = X Wᵀ`, summed over input features (fprop).
        Forward = "forward",
        /// `dX = dY W`, summed over output features (dgrad).
        GradInput = "grad_input",
        /// `dW = dYᵀ X`, summed over tokens (wgrad).
        GradWeight = "grad_weight",
    }
}

names! {
    /// One of the three tensors that the products read.
    Operand, "operand" {
        /// X, (tokens, input features).
        Input = "input",
        /// W, (output features, input features).
        Weight = "weight",
        /// dL/dY, (tokens, output features).
        GradOutput = "grad_output",
    }
}

names! {
    /// A tensor that is no operand of a linear operator and that a recipe may round all the same. On the way
    /// forward it is the tensor itself, on the way back its gradient.
    ///
    /// Of the six products of softmax attention these are all operands: `QKᵀ` reads q and k, `PV`
    /// probabilities and v; `dOVᵀ` and `PᵀdO` the gradient of the attention's output, `dSK` and
    /// `dSᵀQ` that of the scores.
    Place, "place" {
        /// Rows of the embedding, positions added: what enters the first block.
        Embedding = "embedding",
        /// What a norm reads.
        NormInput = "norm_input",
        /// A norm's weight.
        NormGamma = "norm_gamma",
        /// A norm's bias.
        NormBeta = "norm_beta",
        /// What a norm writes.
        NormOutput = "norm_output",
        /// Queries as the attention reads them, after their norm and rotation.
        Q = "q",
        /// Keys, likewise.
        K = "k",
        /// Values.
        V = "v",
        /// `QKᵀ`, scaled, before the softmax.
        Scores = "scores",
        /// After the softmax.
        Probabilities = "probabilities",
        /// What the attention or the recurrence writes, before its output projection.
        Attention = "attention",
        /// What the activation function of an MLP reads.
        ActivationInput = "activation_input",
        /// What it writes, gates multiplied.
        ActivationOutput = "activation_output",
        /// The residual stream after each addition.
        Residual = "residual",
        /// The logits of the head.
        Logits = "logits",
        /// Of gated linear attention: the logits of the decay gate, bias added.
        DecayGate = "decay_gate",
        /// Of gated linear attention: the output gate, before its nonlinearity.
        OutputGate = "output_gate",
    }
}

names! {
    /// An operation that is no product: its arithmetic is a recipe's to choose.
    Vector, "vector operation" {
        /// Layer and root-mean-square norms, of queries and keys too.
        Norm = "norm",
        /// Activation functions.
        Activation = "activation",
        /// Additions of biases to products, and the sums that are the biases' gradients.
        Bias = "bias",
        /// The end of a norm on its way forward, where `norm` rounds nothing: epsilon added, root,
        /// reciprocal, the normalized row, gain and bias.
        NormTail = "norm_tail",
    }
}

impl Operator {
    /// Whether it is of the proxy's teacher.
    pub const fn is_teacher(self) -> bool {
        matches!(self, Self::TeacherGate | Self::TeacherUp | Self::TeacherDown)
    }

    /// Which input it reads, of those that several operators of a block read; `None` if it has its own.
    const fn shared_input(self) -> Option<u8> {
        match self {
            Self::Q | Self::K | Self::V | Self::OutputGate | Self::DecayDown => Some(0),
            Self::Gate | Self::Up => Some(1),
            Self::TeacherGate | Self::TeacherUp => Some(2),
            _ => None,
        }
    }

    /// Whether it is a factor of the decay gate.
    pub const fn is_decay(self) -> bool {
        matches!(self, Self::DecayDown | Self::DecayUp)
    }
}

impl Product {
    /// The left and the right operand, in the order of the formulas above.
    pub const fn operands(self) -> [Operand; 2] {
        match self {
            Self::Forward => [Operand::Input, Operand::Weight],
            Self::GradInput => [Operand::GradOutput, Operand::Weight],
            Self::GradWeight => [Operand::GradOutput, Operand::Input],
        }
    }
}

impl Product {
    /// The axes of the left and the right matrix, as they are stored, that the product sums along.
    pub const fn axes(self) -> [Axis; 2] {
        match self {
            Self::Forward => [Axis::Cols, Axis::Cols],
            Self::GradInput => [Axis::Cols, Axis::Rows],
            Self::GradWeight => [Axis::Rows, Axis::Rows],
        }
    }
}

/// A linear operator of a model: `layers.3.q_proj`, `lm_head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// The block, from 0; `None` for the head.
    pub layer: Option<u32>,
    /// Which of its linear operators.
    pub operator: Operator,
}

impl Site {
    /// The operator whose weight has this name: `model.layers.3.self_attn.q_proj.weight`.
    pub fn of_weight(name: &str) -> Option<Self> {
        let path = name.strip_suffix(".weight")?;
        let ends = |operator: &Operator| {
            path.strip_suffix(operator.name())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        // `teacher.up_proj` ends like `up_proj` too, and means more.
        let named = Operator::ALL.iter().copied().filter(ends);
        let operator = named.max_by_key(|operator| operator.name().len())?;
        let mut words = path.split('.');
        words.find(|word| *word == "layers");
        Some(Self { layer: words.next().and_then(|layer| layer.parse().ok()), operator })
    }

    /// Whether both operators read one tensor.
    pub fn shares_input(self, other: Self) -> bool {
        let inputs = [self, other].map(|site| site.operator.shared_input());
        self.layer == other.layer && inputs[0].is_some() && inputs[0] == inputs[1]
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layer {
            Some(layer) => write!(f, "layers.{layer}.{}", self.operator),
            None => self.operator.fmt(f),
        }
    }
}

/// A text that is no [`Site`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSiteError(String);

impl fmt::Display for ParseSiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Operator::ALL.iter().filter(|operator| **operator != Operator::Head);
        let words: Vec<_> = words.map(|operator| operator.name()).collect();
        write!(
            f,
            "`{}` is no linear operator of a model; write `lm_head` or `layers.N.` and one of {}",
            self.0,
            words.join(", ")
        )
    }
}

impl std::error::Error for ParseSiteError {}

impl FromStr for Site {
    type Err = ParseSiteError;

    fn from_str(text: &str) -> Result<Self, ParseSiteError> {
        let error = || ParseSiteError(text.to_owned());
        if text == Operator::Head.name() {
            return Ok(Self { layer: None, operator: Operator::Head });
        }
        let rest = text.strip_prefix("layers.").ok_or_else(error)?;
        let (layer, operator) = rest.split_once('.').ok_or_else(error)?;
        // `parse` takes a leading plus sign; a name has one spelling only.
        let layer = layer.parse::<u32>().ok().filter(|number| number.to_string() == layer);
        match (layer, operator.parse()) {
            (Some(layer), Ok(operator)) if operator != Operator::Head => {
                Ok(Self { layer: Some(layer), operator })
            }
            _ => Err(error()),
        }
    }
}
