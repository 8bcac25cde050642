"""Kernels lowered for NVIDIA's cards as text for AMD's: what differs is what functions are called."""

import re

_NAMES = {
    r"llvm\.nvvm\.read\.ptx\.sreg\.tid\.([xyz])": r"llvm.amdgcn.workitem.id.\1",
    r"llvm\.nvvm\.read\.ptx\.sreg\.ctaid\.([xyz])": r"llvm.amdgcn.workgroup.id.\1",
    # (sizes stand in a packet that ROCm's device library reads)
    r"llvm\.nvvm\.read\.ptx\.sreg\.(ntid|nctaid)\.([xyz])": r"size.\1.\2",
    r"llvm\.nvvm\.barrier0": "llvm.amdgcn.s.barrier",
    r"llvm\.nvvm\.fabs\.([df])": r"llvm.fabs.\1",
    r"llvm\.nvvm\.round\.([df])": r"llvm.rint.\1",
    r"__nv_(\w+)": r"__ocml_\1",
}
_WIDTHS = {"d": "f64", "f": "f32"}


def amd_text(text, name):
    """LLVM's text of a kernel for `amdgcn-amd-amdhsa`."""
    text = re.sub(r"^(target|!).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(, ![\w.]+ !\d+)+$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(\w+|<\d+ x \w+>|\[\d+ x \w+\]) addrspace\((\d)\)\*", r"ptr addrspace(\2)", text)
    # What is left are places on a thread's stack, which has a space of its own here.
    text = re.sub(r"\w+\*", "ptr addrspace(5)", text)
    text = re.sub(r"( = alloca \w+)", r"\1, addrspace(5)", text)
    text = re.sub(rf"define void @{name}\(", f"define amdgpu_kernel void @{name}(", text)
    for nvidia, amd in _NAMES.items():
        text = re.sub(rf"@{nvidia}", f"@{amd}", text)
    text = re.sub(r"@(llvm\.(?:fabs|rint))\.([df])\b", lambda m: f"@{m[1]}.{_WIDTHS[m[2]]}", text)
    assert "nvvm" not in text, "a function that only NVIDIA's compiler knows"
    return f'target triple = "amdgcn-amd-amdhsa"\n{text}'
