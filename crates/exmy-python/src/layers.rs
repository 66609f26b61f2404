//! Linear layers under a recipe: their three products, with the bits of exmy's own training.
//!
//! A [`Plan`] is a recipe settled for some layers. Each layer is an operator of a model or several that share
//! one input, such as q, k and v. Their weights lie below each other, their outputs beside each other.
//! Weights are (outputs, inputs), as in PyTorch. What a recipe remembers from step to step is in the plan.

use std::sync::{Mutex, MutexGuard, PoisonError};

use exmy_train::nn::device::{Cpu, Matrix, MatrixMut, Slice, SliceMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operator, Product, Site, Vector};
use exmy_train::recipe::device::Quantize;
use exmy_train::recipe::rule::{Rule, Start, Subject, Value};
use exmy_train::recipe::state::RecipeState;
use exmy_train::recipe::sums::Sums;
use exmy_train::recipe::{Engine, Images, Linear, Phase, Recipe};
use pyo3::prelude::*;

use crate::array::{Input, Output};
use crate::blocks::matrix;
use crate::gpu::{Gpu, Images as GpuImages};
use crate::{compute, value_error};

/// Operators that are multiplied together.
struct Layer {
    block: Option<u32>,
    members: Vec<(Operator, usize)>,
    inputs: usize,
    outputs: usize,
}

/// A recipe settled for the layers of a model.
#[pyclass(frozen, module = "exmy._exmy")]
pub(crate) struct Plan {
    recipe: Recipe,
    plan: exmy_train::recipe::Plan,
    layers: Vec<Layer>,
    seed: u64,
    work: Mutex<Work>,
}

/// Memory to work in on each device, and what the recipe remembers, which lies with the device used last.
#[derive(Default)]
struct Work {
    cpu: Images,
    gpu: GpuImages,
    on_gpu: bool,
}

impl Work {
    fn memory(&mut self) -> &mut RecipeState {
        if self.on_gpu { self.gpu.memory() } else { &mut self.cpu.memory }
    }

    /// Says where the next product is formed.
    fn go(&mut self, to_gpu: bool) {
        if self.on_gpu != to_gpu {
            let memory = std::mem::take(self.memory());
            self.on_gpu = to_gpu;
            *self.memory() = memory;
        }
    }
}

/// A step, a part of it (a pass of an evaluation), and whether it trains.
type At = (u64, u64, bool);

const fn phase((step, part, trains): At) -> Phase {
    match (trains, part) {
        (true, 0) => Phase::Train(step),
        (true, _) => Phase::TrainPart { step, part },
        (false, pass) => Phase::Evaluate { step, pass },
    }
}

/// The operators of one layer, as texts with their numbers of outputs.
fn layer(members: &[(String, usize)], inputs: usize, linears: &mut Vec<Linear>) -> PyResult<Layer> {
    let mut own: Vec<(Site, usize)> = Vec::new();
    for (text, outputs) in members {
        let site: Site = text.parse().map_err(value_error)?;
        if *outputs == 0 || inputs == 0 {
            return Err(value_error(format_args!(
                "{site} has {inputs} inputs and {outputs} outputs"
            )));
        }
        if let Some((first, _)) = own.first().filter(|(first, _)| !first.shares_input(site)) {
            return Err(value_error(format_args!(
                "{first} and {site} do not read one input, and one layer multiplies one: q_proj, k_proj and \
                 v_proj of one block do, and gate_proj and up_proj"
            )));
        }
        if linears.iter().any(|linear| linear.site == site) {
            return Err(value_error(format_args!(
                "two layers are {site}; each needs a place of its own, for its random bits"
            )));
        }
        linears.push(Linear { site, outputs: *outputs, inputs });
        own.push((site, *outputs));
    }
    let Some((first, _)) = own.first() else {
        return Err(value_error("a layer has at least one operator"));
    };
    let block = first.layer;
    let outputs = own.iter().map(|(_, outputs)| outputs).sum();
    let members = own.into_iter().map(|(site, outputs)| (site.operator, outputs)).collect();
    Ok(Layer { block, members, inputs, outputs })
}

impl Plan {
    fn layer(&self, at: usize) -> PyResult<&Layer> {
        let count = self.layers.len();
        let beyond = || value_error(format_args!("there is no layer {at}; there are {count}"));
        self.layers.get(at).ok_or_else(beyond)
    }

    fn held(&self) -> MutexGuard<'_, Work> {
        // Buffers are written before they are read, whatever another thread left in them.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does some work on a GPU while other threads of Python run, and waits for its end.
    fn on(
        &self,
        py: Python<'_>,
        gpu: &Gpu,
        work: impl FnOnce(&mut GpuImages) + Send,
    ) -> PyResult<()> {
        gpu.finish(compute(py, || {
            let mut held = self.held();
            held.go(true);
            work(&mut held.gpu);
            gpu.wait()
        }))
    }

    /// Does some work on the CPU while other threads of Python run.
    fn here(&self, py: Python<'_>, work: impl FnOnce(&mut Images) + Send) {
        compute(py, || {
            let mut held = self.held();
            held.go(false);
            work(&mut held.cpu);
        });
    }
}

/// One product of one layer.
struct Call<'a> {
    plan: &'a exmy_train::recipe::Plan,
    seed: u64,
    layer: &'a Layer,
    product: Product,
    at: (At, usize),
    rows: usize,
}

/// A tensor of a product: its name in messages, and its rows and columns; nothing is called "".
type Named = (&'static str, [usize; 2]);

/// What one product reads and what it writes, each where there is any.
type Operands<T> = [Option<T>; 3];
type Results<T> = [Option<T>; 2];

impl Call<'_> {
    /// What a product reads and writes, in the order of `y = x wᵀ + b`, `dx = g w` and `dw = gᵀ x`; `db` are
    /// the sums of the columns of g. `b`, `dw` and `db` may be left out.
    const fn tensors(&self) -> ([Named; 3], [Named; 2]) {
        let (rows, inputs, outputs) = (self.rows, self.layer.inputs, self.layer.outputs);
        let (x, w, g, b) = ([rows, inputs], [outputs, inputs], [rows, outputs], [1, outputs]);
        let none = ("", [0, 0]);
        match self.product {
            Product::Forward => ([("x", x), ("w", w), ("b", b)], [("y", g), none]),
            Product::GradInput => ([("g", g), ("w", w), none], [("dx", x), none]),
            Product::GradWeight => ([("g", g), ("x", x), none], [("dw", w), ("db", b)]),
        }
    }

    /// The tensors that were given, made by `make`, beside their names.
    fn made<'py, T, const N: usize>(
        &self,
        given: &[Option<Bound<'py, PyAny>>; N],
        named: [Named; N],
        make: impl Fn(&Bound<'py, PyAny>, Named) -> PyResult<T>,
    ) -> PyResult<[Option<T>; N]> {
        let mut all = [const { None }; N];
        for ((given, named), made) in given.iter().zip(named).zip(&mut all) {
            match (given, named.0) {
                (None, "" | "b" | "dw" | "db") => {}
                (None, name) => {
                    return Err(value_error(format_args!("{} needs {name}", self.product)));
                }
                (Some(_), "") => {
                    return Err(value_error(format_args!("{} has fewer tensors", self.product)));
                }
                (Some(any), _) => *made = Some(make(any, named)?),
            }
        }
        Ok(all)
    }

    /// Forms the product. Results are written over.
    fn form<D: Quantize>(
        &self,
        device: &D,
        images: &mut Images<D>,
        operands: Operands<Slice<'_, D>>,
        [result, sums]: Results<SliceMut<'_, D>>,
    ) {
        let (at, sequence) = self.at;
        let mut engine =
            Engine::new(self.plan, self.seed, phase(at), images).with_sequences_of(sequence);
        let layer = self.layer.block;
        let group = Group { layer, members: &self.layer.members };
        let (reads, [(_, [rows, cols]), _]) = self.tensors();
        let [Some(left), Some(right), bias] = operands else { unreachable!("both are there") };
        let matrix = |x, (_, [rows, cols]): Named| Matrix::new(x, rows, cols);
        let (a, b) = (matrix(left, reads[0]), matrix(right, reads[1]));
        if let Some(mut out) = result {
            let mut to = MatrixMut::new(out.again(), rows, cols);
            match self.product {
                Product::Forward => engine.forward(device, &group, a, b, to),
                Product::GradInput => engine.grad_input(device, &group, a, b, to),
                Product::GradWeight => {
                    device.fill(to.again(), 0.0);
                    engine.grad_weight(device, &group, a, b, to);
                }
            }
            if let Some(bias) = bias {
                device.add_bias(engine.vector(layer, Vector::Bias, false), out, bias);
            }
        }
        if let Some(mut sums) = sums {
            let rounding = engine.vector(layer, Vector::Bias, true);
            device.fill(MatrixMut::new(sums.again(), 1, self.layer.outputs), 0.0);
            device.bias_backward(rounding, left, sums);
        }
    }
}

#[pymethods]
impl Plan {
    /// A recipe for layers: of each the operators with their outputs, and the inputs. `steps` are those of
    /// the run, which rules such as `from80%` need.
    #[new]
    fn new(
        recipe: &str,
        layers: Vec<(Vec<(String, usize)>, usize)>,
        steps: Option<u64>,
        seed: u64,
    ) -> PyResult<Self> {
        let recipe: Recipe = recipe.parse().map_err(value_error)?;
        let mut linears = Vec::new();
        let made = layers.iter().map(|(members, inputs)| layer(members, *inputs, &mut linears));
        let layers = made.collect::<PyResult<_>>()?;
        let by_share = |rule: &&Rule| matches!(rule.on.from, Some(Start::Percent(_)));
        if let (None, Some(rule)) = (steps, recipe.rules().iter().find(by_share)) {
            return Err(value_error(format_args!(
                "{rule} begins after a share of the run's steps: steps=10000 says how many there are"
            )));
        }
        let plan = exmy_train::recipe::Plan::of(&recipe, linears, steps.unwrap_or(1));
        let plan = plan.map_err(|error| value_error(format_args!("recipe {recipe}: {error}")))?;
        Ok(Self { recipe, plan, layers, seed, work: Mutex::default() })
    }

    /// The recipe's text.
    #[getter]
    fn recipe(&self) -> String {
        self.recipe.to_string()
    }

    /// The rules that are about other tensors and operations than those of linear layers.
    #[getter]
    fn others(&self) -> Vec<String> {
        let other = |subject: &Subject| match subject {
            Subject::Places(..) => true,
            Subject::Vectors(some, _) => some.iter().any(|one| *one != Vector::Bias),
            _ => false,
        };
        let rules = self.recipe.rules().iter().filter(|rule| other(&rule.on.subject));
        rules.map(ToString::to_string).collect()
    }

    /// Whether some rule is about chosen blocks or operators.
    #[getter]
    fn chooses(&self) -> bool {
        let on = |rule: &Rule| !rule.on.layers.is_empty() || !rule.on.operators.is_empty();
        self.recipe.rules().iter().any(on)
    }

    /// Whether linear layers take random words.
    #[getter]
    fn draws(&self) -> bool {
        self.recipe.rules().iter().any(|rule| match rule.value {
            _ if matches!(rule.on.subject, Subject::Places(..)) => false,
            Value::Format(numbers) => numbers.is_random(),
            Value::Sums(Some(Sums::Steps(sum))) => sum.accumulator.rounding.is_stochastic(),
            _ => false,
        })
    }

    /// Whether a step's numbers may differ from those of another: by random words, by rules that begin late,
    /// by what the recipe remembers.
    #[getter]
    fn varies(&self) -> bool {
        let other = |rule: &Rule| match rule.value {
            _ if rule.on.from.is_some() => true,
            Value::Format(numbers) => numbers.window > 0,
            Value::Patch(patch) => patch.is_some(),
            Value::Sums(_) => false,
        };
        self.draws() || self.recipe.rules().iter().any(other)
    }

    /// The numbers of each operand at a step: of the three products in turn, the left and the right one.
    fn numbers(&self, site: &str, step: u64) -> PyResult<Vec<String>> {
        let site: Site = site.parse().map_err(value_error)?;
        let of = |product: &Product| {
            product.operands().map(|one| self.plan.operand(step, site, *product, one).to_string())
        };
        Ok(Product::ALL.iter().flat_map(of).collect())
    }

    /// Forms one of the three products of a layer of so many `rows`: `forward` reads x, w and perhaps b and
    /// writes y, `grad_input` reads g and w and writes dx, `grad_weight` reads g and x and writes dw and db.
    /// On a GPU `device` is its number, and tensors are addresses in its memory.
    fn multiply(
        &self,
        py: Python<'_>,
        device: Option<usize>,
        product: &str,
        layer: usize,
        at: (At, usize),
        rows: usize,
        operands: Operands<Bound<'_, PyAny>>,
        results: Results<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (layer, product) = (self.layer(layer)?, product.parse().map_err(value_error)?);
        let call = Call { plan: &self.plan, seed: self.seed, layer, product, at, rows };
        let (reads, writes) = call.tensors();
        if let Some(device) = device {
            let gpu = Gpu::of(device)?;
            let operands = call.made(&operands, reads, |any, (_, shape)| gpu.tensor(any, shape))?;
            let mut results =
                call.made(&results, writes, |any, (_, shape)| gpu.tensor(any, shape))?;
            return self.on(py, &gpu, |images| {
                let operands = operands.each_ref().map(|one| one.as_ref().map(Into::into));
                let results = results.each_mut().map(|one| one.as_mut().map(Into::into));
                call.form(gpu.device(), images.of(&gpu), operands, results);
            });
        }
        let operands = call.made(&operands, reads, |any, (name, [rows, cols])| {
            let x = Input::<f32>::new(any, name)?;
            matrix(&x, rows, cols, name).map(drop)?;
            Ok(x)
        })?;
        let mut results = call.made(&results, writes, |any, (name, [rows, cols])| {
            let out = Output::<f32>::new(any, name, rows * cols)?;
            for (x, (other, _)) in operands.iter().zip(reads) {
                x.iter().try_for_each(|x| out.apart_from(x, [name, other]))?;
            }
            Ok(out)
        })?;
        let operands = operands.each_ref().map(|one| one.as_ref().map(Input::elements));
        let results = results.each_mut().map(|one| one.as_mut().map(Output::elements));
        self.here(py, |images| {
            let (operands, results) =
                (operands.map(|x| x.map(Into::into)), results.map(|x| x.map(Into::into)));
            call.form(&Cpu::new(), images, operands, results);
        });
        Ok(())
    }

    /// What the recipe remembers from step to step; empty for most.
    #[getter]
    fn memory(&self) -> String {
        self.held().memory().to_text()
    }

    #[setter]
    fn set_memory(&self, text: &str) -> PyResult<()> {
        *self.held().memory() = RecipeState::from_text(text).map_err(value_error)?;
        Ok(())
    }
}

/// The place of the linear operator with this name, as `layers.3.q_proj`; None if the name says none.
#[pyfunction]
pub(crate) fn place_of(name: &str) -> Option<String> {
    let site = Site::of_weight(&format!("{name}.weight"))?.to_string();
    site.parse::<Site>().ok().map(|site| site.to_string())
}
