// WebAssembly types without those of browsers, which do not belong in an agent: this declares only the part that the kernels
// use.

interface AssemblyGlobal<Exports> {
  readonly WebAssembly: {
    Module: new (code: Uint8Array) => object
    Instance: new (module: object) => { readonly exports: Exports }
  }
}

/** Instantiates a module without imports; returns its exports. */
export function instantiate<Exports>(code: Uint8Array): Exports {
  const { WebAssembly } = globalThis as unknown as AssemblyGlobal<Exports>
  return new WebAssembly.Instance(new WebAssembly.Module(code)).exports
}
