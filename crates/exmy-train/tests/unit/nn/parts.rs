mod linear;
mod mlp;
