"""Wrong answers to exercise 4 without a name; each must fail exactly the tests in its mark."""

from lab.answers import slip
from lab.blocks import scaled_dot_product_attention


@slip("multi-head", target="MultiHeadAttention.forward", fails=["multi-head-self"])
def weights_cut_off(self, query, key, value, mask=None):
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    mask = None if mask is None else mask.unsqueeze(-3)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(self.merge(heads)), weights.detach()


@slip("multi-head", target="MultiHeadAttention.forward", fails=["multi-head-mask"])
def axis_of_the_heads_always_second(self, query, key, value, mask=None):
    q, k, v = self.split(self.w_q(query)), self.split(self.w_k(key)), self.split(self.w_v(value))
    mask = None if mask is None else mask.unsqueeze(1)
    heads, weights = scaled_dot_product_attention(q, k, v, mask)
    return self.w_o(self.merge(heads)), weights


@slip("heads-as-sum", target="head_contributions", fails=["heads-as-sum-contributions"])
def normalised_once_more(x, weights, maps):
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ x.unsqueeze(1) @ maps


@slip("attention-cost", target="even_length", fails=["attention-cost-even-length"])
def half_of_four_times(d_model):
    return 4 * d_model / 2
