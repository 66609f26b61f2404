mod forecast;
mod lead;
mod margins;
mod products;
mod surface;
mod twelve_layers;
