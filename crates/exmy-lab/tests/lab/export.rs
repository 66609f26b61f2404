mod tensorboard;
