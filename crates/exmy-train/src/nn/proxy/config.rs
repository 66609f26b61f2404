//! The shape of student and teacher: what `[model]` says where `family = "proxy"`.

use serde::{Deserialize, Serialize};

use crate::nn::decoder::{ConfigError, size};
use crate::nn::loss::RowLoss as Loss;
use crate::nn::parameters::{self, Layout, Role};

/// The function of the student's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The exact GELU.
    Gelu,
    /// `max(x, 0)`.
    Relu,
    /// None.
    Linear,
    /// `silu(gate) up`, of 2/3 as many hidden units.
    Swiglu,
}

/// The function of the teacher's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TeacherActivation {
    /// The student's.
    Student,
    /// The exact GELU.
    Gelu,
    /// `max(x, 0)`.
    Relu,
    /// None.
    Linear,
    /// `silu(gate) up`, of 2/3 as many hidden units.
    Swiglu,
    /// The hyperbolic tangent.
    Tanh,
}

/// How the student's weights start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// PyTorch's: uniform within 1 / sqrt(fan in), biases too.
    Default,
    /// Normal of `init_gain` sqrt(2 / (fan in + fan out)), biases 0.
    Xavier,
}

/// What the products of the teacher are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// As they are: the targets are the same for every recipe.
    F32,
    /// By the run's recipe, as in the code of the study.
    Recipe,
}

/// The shape of student and teacher.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Blocks of the student.
    pub layers: usize,
    /// Width of rows and of the residual stream.
    pub width: usize,
    /// Between the products of a block.
    pub activation: Activation,
    /// Whether each block begins with a layer norm.
    pub norm: bool,
    /// Whether these norms have a gain and a bias.
    pub norm_affine: bool,
    /// Added to the variance.
    pub norm_eps: f64,
    /// How weights start.
    pub init: Init,
    /// Factor of `xavier`.
    pub init_gain: f64,
    /// Mean of the gains of norms at the start.
    pub gain_init: f64,
    /// Standard deviation of the gains of norms at the start.
    pub gain_spread: f64,
    /// Blocks of the teacher; 0: as many as the student's.
    pub teacher_layers: usize,
    /// Hidden units of the teacher's blocks (2/3 of it where gated); 0: `width`.
    pub teacher_width: usize,
    /// Between the products of the teacher's blocks.
    pub teacher_activation: TeacherActivation,
    /// Precision of the teacher's products.
    pub teacher_precision: Precision,
    /// Standard deviation of what is added to the targets.
    pub noise: f64,
    /// Rows of the validation loss.
    pub validation_rows: usize,
    /// What is minimized; a file that lacks it means the squared error.
    #[serde(default)]
    pub loss: Loss,
}

impl Default for Config {
    /// The defaults of the study's code, at a quarter of its width and depth.
    fn default() -> Self {
        Self {
            layers: 2,
            width: 128,
            activation: Activation::Gelu,
            norm: true,
            norm_affine: true,
            norm_eps: 1e-5,
            init: Init::Default,
            init_gain: 0.5,
            gain_init: 1.0,
            gain_spread: 0.0,
            teacher_layers: 0,
            teacher_width: 0,
            teacher_activation: TeacherActivation::Student,
            teacher_precision: Precision::F32,
            noise: 0.005,
            validation_rows: 4 * 2048,
            loss: Loss::Mse,
        }
    }
}

/// Two thirds of `width`, to the nearest whole number.
const fn two_thirds(width: usize) -> usize {
    (4 * width + 3) / 6
}

impl Config {
    /// Whether these sizes make a model.
    ///
    /// # Errors
    /// Names the first key that does not fit, what it holds and what would work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        size("layers", self.layers)?;
        size("width", self.width)?;
        size("validation_rows", self.validation_rows)?;
        size("teacher_layers", self.teacher_depth())?;
        size("teacher_width", self.teacher_hidden())?;
        if !(self.norm_eps > 0.0 && self.norm_eps < 1.0) {
            return Err(ConfigError::new("norm_eps", self.norm_eps, "above 0 and below 1"));
        }
        for (key, value) in [
            ("init_gain", self.init_gain),
            ("gain_spread", self.gain_spread),
            ("noise", self.noise),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(ConfigError::new(key, value, "a finite number, not negative"));
            }
        }
        if !self.gain_init.is_finite() {
            return Err(ConfigError::new("gain_init", self.gain_init, "finite"));
        }
        let block = self.width as u128 * (2 * self.hidden() + self.hidden()) as u128;
        if block * self.layers as u128 > 1 << 40 {
            let works = "fewer: the student would have more than 2^40 parameters";
            return Err(ConfigError::new("layers", self.layers, works));
        }
        Ok(())
    }

    /// Hidden units of a student's block.
    pub const fn hidden(&self) -> usize {
        match self.activation {
            Activation::Swiglu => two_thirds(4 * self.width),
            _ => 4 * self.width,
        }
    }

    /// Blocks of the teacher.
    pub const fn teacher_depth(&self) -> usize {
        if self.teacher_layers == 0 { self.layers } else { self.teacher_layers }
    }

    const fn teacher_is_gated(&self) -> bool {
        match self.teacher_activation {
            TeacherActivation::Student => matches!(self.activation, Activation::Swiglu),
            TeacherActivation::Swiglu => true,
            _ => false,
        }
    }

    /// Hidden units of a teacher's block.
    pub const fn teacher_hidden(&self) -> usize {
        let width = if self.teacher_width == 0 { self.width } else { self.teacher_width };
        if self.teacher_is_gated() { two_thirds(width) } else { width }
    }

    /// Weights of the student's linear operators.
    pub const fn linear_parameters(&self) -> usize {
        let matrices = if matches!(self.activation, Activation::Swiglu) { 3 } else { 2 };
        self.layers * matrices * self.width * self.hidden()
    }

    /// Weights of the teacher, which are those of its linear operators.
    pub fn teacher_parameters(&self) -> usize {
        self.teacher_layout().len()
    }

    /// Multiplications and additions that training on one row takes: 6 per weight of the student's
    /// linear operators (2 each for forward, `grad_input`, `grad_weight`), and 2 per weight of the
    /// teacher, which only goes forward. Norms, activations and the optimizer are not counted.
    pub fn flops_per_row(&self) -> u64 {
        6 * self.linear_parameters() as u64 + 2 * self.teacher_parameters() as u64
    }

    /// The arena of the student's parameters.
    ///
    /// # Panics
    /// If the sizes exceed memory's address space, which [`validate`](Self::validate) excludes.
    pub fn layout(&self) -> Layout {
        use parameters::Init::{Around, Normal, Ones, Uniform, Zeros};
        let (d, hidden) = (self.width, self.hidden());
        let weight = |rows: usize, cols: usize| match self.init {
            Init::Default => Uniform { bound: 1.0 / libm::sqrt(cols as f64) },
            Init::Xavier => Normal { std: self.init_gain * libm::sqrt(2.0 / (rows + cols) as f64) },
        };
        let gain = match (self.gain_init, self.gain_spread) {
            (1.0, 0.0) => Ones,
            (mean, std) => Around { mean, std },
        };
        let mut layout = Layout::default();
        for k in 0..self.layers {
            let name = |rest: &str| format!("model.layers.{k}.{rest}");
            if self.norm && self.norm_affine {
                layout.push(name("input_layernorm.weight"), &[d], Role::Norm, gain);
                layout.push(name("input_layernorm.bias"), &[d], Role::NormBias, Zeros);
            }
            let inner = weight(hidden, d);
            if self.activation == Activation::Swiglu {
                layout.push(name("mlp.gate_proj.weight"), &[hidden, d], Role::Matrix, inner);
            }
            layout.push(name("mlp.up_proj.weight"), &[hidden, d], Role::Matrix, inner);
            let outer = weight(d, hidden);
            layout.push(name("mlp.down_proj.weight"), &[d, hidden], Role::Matrix, outer);
            // PyTorch draws a bias from the interval of its weight.
            let bias = if self.init == Init::Default { outer } else { Zeros };
            layout.push(name("mlp.down_proj.bias"), &[d], Role::Bias, bias);
        }
        layout
    }

    /// The arena of the teacher's parameters, which never change.
    pub fn teacher_layout(&self) -> Layout {
        let (d, hidden) = (self.width, self.teacher_hidden());
        let mut layout = Layout::default();
        for k in 0..self.teacher_depth() {
            let mut matrix = |name: &str, rows: usize, cols: usize| {
                let name = format!("teacher.layers.{k}.{name}.weight");
                let init = parameters::Init::Uniform { bound: 1.0 / libm::sqrt(cols as f64) };
                layout.push(name, &[rows, cols], Role::Matrix, init);
            };
            if self.teacher_is_gated() {
                matrix("gate_proj", hidden, d);
            }
            matrix("up_proj", hidden, d);
            matrix("down_proj", d, hidden);
        }
        layout
    }
}
