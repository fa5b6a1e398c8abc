// WebAssembly without the types of browsers, which do not belong in an agent: only the part that its kernels use is described.

interface AssemblyGlobal<Exports> {
  readonly WebAssembly: {
    Module: new (code: Uint8Array) => object
    Instance: new (module: object) => { readonly exports: Exports }
  }
}

/** An instance of a module that imports nothing; returns what it exports. */
export function instantiate<Exports>(code: Uint8Array): Exports {
  const { WebAssembly } = globalThis as unknown as AssemblyGlobal<Exports>
  return new WebAssembly.Instance(new WebAssembly.Module(code)).exports
}
