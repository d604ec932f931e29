"""PyTorch's turns in bench/kernels, on one thread: reads requests from standard input and answers each with a line.

    version         what PyTorch is made of
    prepare TASK    reads the task's inputs, each from a file in FOLDER that is named after it and holds its elements
    run N           runs the task N times; answers the seconds of processor time that this took
    write           writes what the last run left, each output into a file that is named after it

An answer begins with "ok", or says what went wrong. Usage: torch_worker.py FOLDER
"""

import os
import re
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # read when PyTorch is loaded
import torch  # noqa: E402

TYPES = {"float": torch.float32, "double": torch.float64, "bfloat16": torch.bfloat16}


class Folder:
    """Arrays in files. Tensors are copies: none of them shares pages with a file while it is timed."""

    def __init__(self, path):
        self.path = path

    def read(self, name, dtype, *shape):
        size = torch.Size(shape).numel()
        return torch.from_file(os.path.join(self.path, name), False, size, dtype=dtype).reshape(shape).clone()

    def write(self, name, tensor):
        path = os.path.join(self.path, name)
        open(path, "wb").close()
        torch.from_file(path, True, tensor.numel(), dtype=tensor.dtype).copy_(tensor.detach().reshape(-1))


class Gemm:
    """gemm TYPE M N K none|a|b COPIES: C = A B, where the transposed factor lies in memory as its transpose. Each run
    takes the next of so many copies of B, which together are larger than the caches."""

    def __init__(self, folder, dtype, m, n, k, transposed, copies):
        m, n, k = int(m), int(n), int(k)
        self.a = folder.read("a", dtype, k, m).t() if transposed == "a" else folder.read("a", dtype, m, k)
        b = folder.read("b", dtype, n, k) if transposed == "b" else folder.read("b", dtype, k, n)
        self.b = [b.clone() for _ in range(int(copies))]
        if transposed == "b":
            self.b = [b.t() for b in self.b]
        self.c = torch.empty(m, n, dtype=dtype)
        self.next = 0

    def run(self):
        torch.mm(self.a, self.b[self.next], out=self.c)
        self.next = (self.next + 1) % len(self.b)

    def outputs(self):
        return {"c": self.c}


class AttentionForward:
    """attention_forward TYPE TOKENS HEAD_DIM CAUSAL: one head."""

    def __init__(self, folder, dtype, tokens, head_dim, causal):
        shape = (1, 1, int(tokens), int(head_dim))
        self.qkv = [folder.read(name, dtype, *shape) for name in ("q", "k", "v")]
        self.causal = causal == "1"
        self.out = None

    def forward(self):
        return torch.nn.functional.scaled_dot_product_attention(*self.qkv, is_causal=self.causal)

    @torch.no_grad()
    def run(self):
        self.out = self.forward()

    def outputs(self):
        return {"out": self.out}


class Decode:
    """decode TYPE KEYS QUERY_HEADS KEY_HEADS HEAD_DIM: one query token on many keys. The query heads of a key head are
    given as rows of it, so that no key is copied for each of them."""

    def __init__(self, folder, dtype, keys, query_heads, key_heads, head_dim):
        query_heads, key_heads, head_dim = int(query_heads), int(key_heads), int(head_dim)
        self.q = folder.read("q", dtype, 1, key_heads, query_heads // key_heads, head_dim)
        self.k, self.v = (folder.read(name, dtype, 1, key_heads, int(keys), head_dim) for name in ("k", "v"))
        self.out = None

    @torch.no_grad()
    def run(self):
        self.out = torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v)

    def outputs(self):
        return {"out": self.out}


class AttentionBackward(AttentionForward):
    """attention_backward TYPE TOKENS HEAD_DIM CAUSAL: the gradients of one head, given what its forward pass kept."""

    def __init__(self, folder, dtype, tokens, head_dim, causal):
        super().__init__(folder, dtype, tokens, head_dim, causal)
        self.dout = folder.read("dout", dtype, 1, 1, int(tokens), int(head_dim))
        for tensor in self.qkv:
            tensor.requires_grad_()
        self.out = self.forward()
        self.gradients = None

    def run(self):
        self.gradients = torch.autograd.grad(self.out, self.qkv, self.dout, retain_graph=True)

    def outputs(self):
        return dict(zip(("dq", "dk", "dv"), self.gradients))


TASKS = {
    "gemm": Gemm,
    "attention_forward": AttentionForward,
    "attention_backward": AttentionBackward,
    "decode": Decode,
}


def version():
    mkl = re.search(r"Math Kernel Library Version (\S+)", torch.__config__.show())
    onednn = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    parts = [f"PyTorch {torch.__version__}", torch.backends.cpu.get_cpu_capability()]
    parts += [f"MKL {mkl[1]}"] if mkl else []
    parts += [f"oneDNN {onednn[1]}"] if onednn else []
    return ", ".join(parts)


def seconds_of(run, times):
    start = time.process_time()  # of all threads, should there be others
    for _ in range(times):
        run()
    return time.process_time() - start


def main():
    torch.set_num_threads(1)
    folder = Folder(sys.argv[1])
    task = None
    for line in sys.stdin:
        words = line.split()
        answer = ""
        try:
            if words[0] == "version":
                answer = version()
            elif words[0] == "prepare":
                task = None  # its memory goes before the next one's comes
                task = TASKS[words[1]](folder, TYPES[words[2]], *words[3:])
            elif words[0] == "run":
                answer = repr(seconds_of(task.run, int(words[1])))
            elif words[0] == "write":
                for name, tensor in task.outputs().items():
                    folder.write(name, tensor)
            else:
                raise ValueError(f"no request {words[0]}")
            print("ok", answer, flush=True)
        except Exception as error:  # whatever it is, the benchmark prints it
            print(" ".join(f"{type(error).__name__}: {error}".split()), flush=True)


main()
