//! Models as others publish them: a folder of Hugging Face, or a GGUF file.
//!
//! A folder has `config.json` and safetensors, one file or several with their index; a GGUF file says all of
//! that of itself. [`Published::open`] reads what they claim and checks it: the [shape](family) of a
//! [`Decoder`](crate::nn::decoder::Decoder), and for every parameter the tensor it comes from. Files are
//! [mapped](map), and [`Published::fill`] reads one parameter at a time, so a model may be larger than the
//! memory. What is not supported is an error that names the key or the tensor.

pub mod family;
pub mod gguf;
pub mod map;
mod meta;
#[doc(hidden)]
pub mod names;
mod sentencepiece;
#[doc(hidden)]
pub mod vocabulary;
pub mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use crate::nn::decoder::{Config, InitScheme};
use crate::nn::parameters::{Entry, Layout, Role};
use exmy::error::{Error, Result};
use exmy::safetensors::{Reader, given, quoted};
use exmy::shown::printable_path;
use family::Shape;
use gguf::Gguf;
use map::Map;
use names::Origin;

/// A model in files. See the [module](self).
#[derive(Debug)]
pub struct Published {
    path: PathBuf,
    shape: Shape,
    layout: Layout,
    files: Files,
    origins: BTreeMap<String, Origin>,
}

/// Where tensors lie.
#[derive(Debug)]
enum Files {
    Safetensors {
        readers: Vec<Reader<Cursor<Map>>>,
        /// The file of each tensor.
        places: BTreeMap<String, usize>,
    },
    Gguf(Map, Gguf),
}

/// Tensors of published models that no forward pass reads: tables that are formed again, and masks.
const DERIVED: [&str; 5] = [
    "rope_freqs.weight",
    ".rotary_emb.inv_freq",
    ".attn.bias",
    ".attn.masked_bias",
    "attention.bias",
];

/// The head's weights, in files and in layouts.
const HEAD: &str = "lm_head.weight";

/// What begins the names of an optimizer's memory in a run's checkpoint.
const MOMENTS: [&str; 2] = ["adamw.", "sgd."];

impl Published {
    /// Opens a folder with `config.json` or the file `config.json` in it, or a GGUF file or a folder with
    /// one.
    ///
    /// # Errors
    /// If there is no model, it is damaged, or it is not supported.
    pub fn open(path: &Path) -> Result<Self> {
        let works = "a model is a folder with config.json and safetensors, a GGUF file, or a run of \
                     exmy train";
        let path = if path.ends_with("config.json") { path.parent().unwrap_or(path) } else { path };
        if path.extension().is_some_and(|end| end == "safetensors") && path.is_file() {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = printable_path(folder.unwrap_or(Path::new(".")));
            return Err(Error::new(format!("{} has tensors alone", printable_path(path)))
                .hint(format!("name the folder with its config.json: {folder}")));
        }
        if path.exists() && !path.is_file() && !path.is_dir() {
            let what = format!("{} is neither a file nor a folder", printable_path(path));
            return Err(Error::new(what).hint(works));
        }
        if path.is_file() {
            return Self::of_gguf(path).map_err(|error| named(path, error));
        }
        if path.join("config.json").is_file() {
            return Self::of_folder(path).map_err(|error| named(path, error));
        }
        let files =
            std::fs::read_dir(path).map_err(|error| Error::io("read", path, error).hint(works))?;
        let names = files.flatten().map(|file| file.path());
        let mut found: Vec<PathBuf> =
            names.filter(|name| name.extension().is_some_and(|end| end == "gguf")).collect();
        found.sort();
        match &found[..] {
            [one] => Self::of_gguf(one).map_err(|error| named(one, error)),
            [] => Err(Error::new(format!("{} holds no model", printable_path(path))).hint(works)),
            [one, ..] => Err(Error::new(format!("{} holds several models", printable_path(path)))
                .hint(format!("name one, for example {}", printable_path(one)))),
        }
    }

    fn of_gguf(path: &Path) -> Result<Self> {
        let map = Map::open(path)?;
        let gguf = Gguf::parse(map.as_ref()).map_err(|error| {
            Error::new("it is no whole GGUF file that is supported").because(error)
        })?;
        let shape = meta::shape(&gguf, map.as_ref())?;
        let layout = layout(&shape.config, gguf.tensors().len())?;
        let tensors = gguf.tensors().iter().map(|(name, tensor)| {
            let theirs = names::of_gguf(name).unwrap_or_else(|| name.clone());
            (name.as_str(), theirs, &tensor.shape[..])
        });
        let sizes =
            "keys of the file (llama.embedding_length, ...) say otherwise: take a whole one";
        let origins = complete(names::origins(tensors, &layout, sizes)?, &layout, |_| false)?;
        Ok(Self { path: path.to_owned(), shape, layout, files: Files::Gguf(map, gguf), origins })
    }

    fn of_folder(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let text = given::read(&path, given::SETTINGS);
        let shape = family::read(&text.map_err(|error| Error::io("read", &path, error))?)?;
        let sizes = format!(
            "set vocab_size, hidden_size and their like in {} to the sizes of the weights, or take the \
             weights that belong to it",
            printable_path(&path)
        );
        Self::of_safetensors(folder, shape, files(folder)?, &sizes)
    }

    /// The model in a folder whose shape and file are known from elsewhere: a run with its final weights or a
    /// checkpoint, which has an optimizer's memory, too.
    ///
    /// # Errors
    /// If there are no weights of that shape.
    pub fn of_shape(folder: &Path, config: Config, file: PathBuf) -> Result<Self> {
        // How weights begin says nothing of a model that has some.
        let begun = Config { init: InitScheme::Normal, ..Config::default() };
        let Config { init, gain_init, gain_spread, hot_channels, hot_scale, .. } = begun;
        let config = Config { init, gain_init, gain_spread, hot_channels, hot_scale, ..config };
        let shape = Shape { config, full: None };
        let sizes = "its config.toml says otherwise: put the run's own weights back";
        Self::of_safetensors(folder, shape, vec![file], sizes).map_err(|error| named(folder, error))
    }

    fn of_safetensors(
        folder: &Path,
        mut shape: Shape,
        files: Vec<PathBuf>,
        sizes: &str,
    ) -> Result<Self> {
        let mut readers = Vec::new();
        let (mut places, mut parts) = (BTreeMap::new(), BTreeSet::new());
        let mut tensors = Vec::new();
        for path in files {
            let reader = Reader::new(Cursor::new(Map::open(&path)?), &path)?;
            let records = reader.header().records().map_err(|error| named(&path, error))?;
            for entry in reader.header().entries() {
                let name = &entry.name;
                if places.insert(name.clone(), readers.len()).is_some() {
                    let what = format!("{} is in two files", quoted(name));
                    return Err(
                        Error::new(what).hint("an index or the files are not those of one model")
                    );
                }
                let shape = records.get(name).map_or(&entry.shape, |record| &record.shape);
                tensors.push((name.clone(), shape.clone()));
            }
            parts.extend(records.into_keys().map(|name| format!("{name}_")));
            readers.push(reader);
        }
        let all = || tensors.iter().map(|(name, shape)| (name.as_str(), name.clone(), &shape[..]));
        let mut layout = self::layout(&shape.config, tensors.len())?;
        let mut found = names::origins(all(), &layout, sizes)?;
        // As transformers has it: a head that is there and is not the embedding is not tied to it, whatever
        // the configuration says.
        if let Some(&file) = places.get(HEAD).filter(|_| shape.config.tied)
            && let Some(table) = layout.iter().find(|entry| entry.role == Role::Tokens)
            && let Some(origin) = found.0.get(&table.name)
        {
            let table = bytes_of(&mut readers[places[&origin.tensor]], &origin.tensor)?;
            if bytes_of(&mut readers[file], HEAD)? != table {
                shape.config.tied = false;
                layout = self::layout(&shape.config, tensors.len())?;
                found = names::origins(all(), &layout, sizes)?;
            }
        }
        let is_part = |name: &str| parts.iter().any(|part| name.starts_with(part.as_str()));
        let origins = complete(found, &layout, is_part)?;
        let files = Files::Safetensors { readers, places };
        Ok(Self { path: folder.to_owned(), shape, layout, files, origins })
    }

    /// The folder or file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The shape of the decoder.
    pub fn config(&self) -> &Config {
        &self.shape.config
    }

    /// The longest sequence that is computed as its model does, and why it is no longer.
    pub fn longest(&self) -> (usize, &'static str) {
        let context = self.shape.config.context;
        match self.shape.full {
            Some(window) if window < context => (window, "sliding window"),
            _ => (context, "context"),
        }
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of the files.
    pub fn bytes(&self) -> u64 {
        match &self.files {
            Files::Gguf(map, _) => map.as_ref().len() as u64,
            Files::Safetensors { readers, .. } => {
                readers.iter().map(|reader| reader.header().data_bytes()).sum()
            }
        }
    }

    /// The values of one parameter.
    ///
    /// # Errors
    /// If its tensor cannot be read.
    ///
    /// # Panics
    /// If the parameter is none of [`layout`](Self::layout), or `values` has not its length.
    pub fn fill(&mut self, entry: &Entry, values: &mut [f32]) -> Result<()> {
        let origin = &self.origins[&entry.name];
        let mut all = match &mut self.files {
            Files::Safetensors { readers, places } => {
                readers[places[&origin.tensor]].read_values(&origin.tensor)?
            }
            Files::Gguf(map, gguf) => {
                let tensor = &gguf.tensors()[&origin.tensor];
                let count = tensor.shape.iter().product();
                let mut all = Vec::new();
                exmy::reserve::reserve(&mut all, count).map_err(|_| {
                    Error::new(format!("there is no memory for {}", quoted(&origin.tensor)))
                })?;
                all.resize(count, 0.0);
                tensor.dtype.dequantize(&map.as_ref()[tensor.range.clone()], &mut all);
                meta::unpermute(gguf, &entry.name, &self.shape.config, &mut all);
                all
            }
        };
        if let Some([rows, cols]) = origin.to_transpose {
            all = names::transposed(&all, rows, cols);
        }
        values.copy_from_slice(origin.part(&all));
        Ok(())
    }

    /// All parameters, one after the other; `each` gets how many elements are there.
    ///
    /// # Errors
    /// If they cannot be read or there is no memory for them.
    pub fn weights(&mut self, mut each: impl FnMut(usize)) -> Result<Vec<f32>> {
        let layout = self.layout.clone();
        let mut weights = Vec::new();
        exmy::reserve::reserve(&mut weights, layout.len())
            .map_err(|_| Error::new("there is no memory for the weights in f32"))?;
        weights.resize(layout.len(), 0.0);
        for entry in &layout {
            self.fill(entry, &mut weights[entry.range.clone()])?;
            each(entry.range.end);
        }
        Ok(weights)
    }

    /// The tokens that end a text of this model; none where its files name none.
    ///
    /// # Errors
    /// If a file that names them cannot be read, or names something else.
    pub fn ends(&self) -> Result<Vec<u32>> {
        const KEY: &str = "eos_token_id";
        let wrong = |found: String| Error::new(format!("{KEY} is {found}, no token"));
        if let Files::Gguf(_, gguf) = &self.files {
            let Some(found) = gguf.number(&format!("tokenizer.ggml.{KEY}"))? else {
                return Ok(Vec::new());
            };
            let token = u32::MIN as f64..=u32::MAX.into();
            return match token.contains(&found) {
                true => Ok(vec![found as u32]),
                false => Err(wrong(found.to_string())),
            };
        }
        // What a model's file for generation says comes first.
        for name in ["generation_config.json", "config.json"] {
            let path = self.path.join(name);
            if !path.is_file() {
                continue;
            }
            let text = given::read(&path, given::SETTINGS);
            let text = text.map_err(|error| Error::io("read", &path, error))?;
            let value: serde_json::Value = serde_json::from_slice(&text)
                .map_err(|error| named(&path, Error::new("it is no JSON").because(error)))?;
            let tokens = match value.get(KEY) {
                None | Some(serde_json::Value::Null) => continue,
                Some(serde_json::Value::Array(tokens)) => tokens.clone(),
                Some(one) => vec![one.clone()],
            };
            let number = |token: &serde_json::Value| {
                let number = token.as_u64().and_then(|token| u32::try_from(token).ok());
                number.ok_or_else(|| named(&path, wrong(token.to_string())))
            };
            return tokens.iter().map(number).collect();
        }
        Ok(Vec::new())
    }

    /// The tokenizer as the text of a `tokenizer.json`: the folder's, or made of what a GGUF file says.
    ///
    /// # Errors
    /// If there is none, or it is not supported.
    pub fn tokenizer(&self) -> Result<Vec<u8>> {
        match &self.files {
            Files::Gguf(_, gguf) => {
                vocabulary::json(gguf).map_err(|error| named(&self.path, error))
            }
            Files::Safetensors { .. } => {
                let path = self.path.join("tokenizer.json");
                given::read(&path, given::RESULTS).map_err(|error| {
                    Error::io("read", &path, error).hint("name one by --tokenizer FILE")
                })
            }
        }
    }
}

/// The parameters of a model in so many tensors. A file of few that claims many layers is refused before they
/// are listed.
fn layout(config: &Config, tensors: usize) -> Result<Layout> {
    match config.layers <= tensors {
        true => Ok(config.layout()),
        false => {
            let layers = config.layers;
            Err(Error::new(format!(
                "{layers} layers are not in {tensors} tensors: some are missing"
            )))
        }
    }
}

/// A tensor as it is stored.
fn bytes_of(reader: &mut Reader<Cursor<Map>>, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_into(name, &mut bytes).map(|()| bytes)
}

/// An error about a path.
fn named(path: &Path, error: Error) -> Error {
    Error::new(printable_path(path)).because(error)
}

/// Refuses parameters without a tensor, and tensors that would not be used.
fn complete(
    (origins, unused): names::Origins,
    layout: &Layout,
    is_part: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Origin>> {
    if let Some(entry) = layout.iter().find(|entry| !origins.contains_key(&entry.name)) {
        return Err(Error::new(format!("there is no tensor for {}", entry.name)));
    }
    let derived = |name: &str| {
        DERIVED.iter().any(|end| name.ends_with(end))
            || MOMENTS.iter().any(|begin| name.starts_with(begin))
    };
    // A tied head is the token table once more.
    let tied = |name: &str| layout.find(HEAD).is_none() && matches!(name, HEAD | "output.weight");
    let left = unused.iter().find(|name| !(derived(name) || tied(name) || is_part(name)));
    match left {
        None => Ok(origins),
        Some(name) => Err(Error::new(format!("tensor {} is of no supported kind", quoted(name)))
            .hint("a forward pass without it would be another model's")),
    }
}

/// The safetensors of a folder: those of its index, or the only one.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let one = folder.join("model.safetensors");
    let index = folder.join("model.safetensors.index.json");
    if !index.is_file() {
        return match one.is_file() {
            true => Ok(vec![one]),
            false => Err(Error::new(
                "there is no model.safetensors and no model.safetensors.index.json",
            )
            .hint("a pytorch_model.bin holds code: load it there and save it by save_pretrained")),
        };
    }
    let text =
        given::read(&index, given::SETTINGS).map_err(|error| Error::io("read", &index, error))?;
    let wrong = |what: &str| Error::new(format!("{}: {what}", printable_path(&index)));
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| wrong("it is no JSON").because(error))?;
    let Some(map) = value.get("weight_map").and_then(serde_json::Value::as_object) else {
        return Err(wrong("it has no weight_map"));
    };
    let mut names = BTreeSet::new();
    for (tensor, file) in map {
        let file = file.as_str().unwrap_or_default();
        // A file is one of this folder, whatever an index says.
        let plain = Path::new(file).file_name().is_some_and(|name| name == file);
        if !plain {
            return Err(wrong(&format!("the file of {} is {}", quoted(tensor), quoted(file)))
                .hint("it is the name of a file in the same folder"));
        }
        names.insert(file);
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}
