"""Pack CUDA text files whole into one C table (kernel_table.h), each under its own path. A line of a file that reads
"// Architecture: sm_90a" makes it one for that architecture alone."""
import re


def c_array(data):
    rows = (data[k:k + 24] for k in range(0, len(data), 24))
    return ",\n".join("    " + ",".join(str(byte) for byte in row) for row in rows) + ",0"


def embed(target, source, env):
    texts = [(node.srcnode().path, open(str(node), "rb").read()) for node in source]
    with open(str(target[0]), "w") as out:
        out.write('#include "kernel_table.h"\n\n')
        for k, (_, data) in enumerate(texts):
            out.write(f"static const char text_{k}[] = {{\n{c_array(data)}}};\n")
        out.write("\nconst wt_kernel_text wt__kernel_table[] = {\n")
        for k, (path, data) in enumerate(texts):
            only = re.search(rb"^// Architecture: sm_(\w+)$", data, re.MULTILINE)
            name = f'"{only[1].decode()}"' if only else "0"
            out.write(f'    {{"{path}", text_{k}, {name}}},\n')
        out.write(f"    {{0, 0, 0}},\n}};\nconst int wt__n_kernel_texts = {len(texts)};\n")
