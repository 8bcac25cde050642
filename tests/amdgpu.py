"""Kernels lowered for NVIDIA's cards as text for AMD's: what differs is what functions are called."""

import re

_NAMES = {
    r"llvm\.nvvm\.read\.ptx\.sreg\.tid\.([xyz])": r"llvm.amdgcn.workitem.id.\1",
    r"llvm\.nvvm\.read\.ptx\.sreg\.ctaid\.([xyz])": r"llvm.amdgcn.workgroup.id.\1",
    # (sizes stand in a packet that ROCm's device library reads)
    r"llvm\.nvvm\.read\.ptx\.sreg\.(ntid|nctaid)\.([xyz])": r"size.\1.\2",
    r"llvm\.nvvm\.barrier0": "llvm.amdgcn.s.barrier",
    r"llvm\.nvvm\.(fabs|floor|ceil|trunc)\.([df])": r"llvm.\1.\2",
    r"llvm\.nvvm\.round\.([df])": r"llvm.rint.\1",
    r"__nv_(\w+)": r"__ocml_\1",
}
# Halves are their bits, which NVIDIA's instructions convert.
_HALVES = {
    r"(%\w+) = call float asm .*\(i16 (\S+)\)": (
        r"\1.h = bitcast i16 \2 to half\n  \1 = fpext half \1.h to float"
    ),
    r"(%\w+) = call i16 asm .*\((float|double) (\S+)\)": (
        r"\1.h = fptrunc \2 \3 to half\n  \1 = bitcast half \1.h to i16"
    ),
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
    for nvidia, amd in _HALVES.items():
        text = re.sub(nvidia, amd, text)
    for nvidia, amd in _NAMES.items():
        text = re.sub(rf"@{nvidia}", f"@{amd}", text)
    text = re.sub(
        r"@(llvm\.(?:fabs|floor|ceil|trunc|rint))\.([df])\b", lambda m: f"@{m[1]}.{_WIDTHS[m[2]]}", text
    )
    assert "nvvm" not in text, "a function that only NVIDIA's compiler knows"
    return f'target triple = "amdgcn-amd-amdhsa"\n{text}'
