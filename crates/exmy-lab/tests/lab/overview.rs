mod answer;
mod chosen;
mod unlike;
