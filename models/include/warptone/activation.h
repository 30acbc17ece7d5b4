/// What comes after a product in a feed-forward layer, and elsewhere.
#ifndef WARPTONE_ACTIVATION_H
#define WARPTONE_ACTIVATION_H

typedef enum wt_activation {
    WT_ACTIVATION_NONE,
    WT_ACTIVATION_RELU,
    WT_ACTIVATION_SILU,      ///< v / (1 + exp(-v))
    WT_ACTIVATION_GELU,      ///< v (1 + erf(v / sqrt(2))) / 2: "gelu"
    WT_ACTIVATION_GELU_TANH, ///< its approximation by tanh: "gelu_new", "gelu_pytorch_tanh", "gelu_fast"
    WT_N_ACTIVATIONS,        ///< of products and models; those that follow are of nn.h alone
    WT_ACTIVATION_SIGMOID = WT_N_ACTIVATIONS,
    WT_ACTIVATION_TANH,
    WT_ACTIVATION_LEAKY_RELU,
    WT_ACTIVATION_RELU2, ///< its square
    WT_ACTIVATION_SNAKE, ///< v + sin(alpha v)^2 / alpha
    WT_N_NN_ACTIVATIONS
} wt_activation;

#endif
