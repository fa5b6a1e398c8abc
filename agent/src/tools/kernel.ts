// Compiles kernels, that of the lane for bytes and that of deflate: AssemblyScript to WebAssembly, as a module with its code in base64.

import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export interface KernelSource {
  /** The folder of its files; the first is `index.as.ts`. */
  readonly folder: string
  /** Pages of 64 KiB: the memory never grows, so views of it stay valid. */
  readonly pages: number
  /** The exports of the module. */
  readonly name: string
}

/** Its own types bring those of AssemblyScript into every file, where `console` and others have fewer members. */
const compilerModule: string = 'assemblyscript/asc'

interface Compiler {
  main(
    args: readonly string[],
    files: {
      readFile(name: string): string | null
      writeFile(name: string, content: Uint8Array | string): void
      listFiles(): string[]
    },
  ): Promise<{ readonly error: Error | null; readonly stderr: object }>
}

/** Content of the module with the code of a kernel. */
export async function kernelModule({ folder, pages, name }: KernelSource): Promise<string> {
  const { default: compiler } = (await import(compilerModule)) as { readonly default: Compiler }
  let code: Uint8Array | undefined
  const { error, stderr } = await compiler.main(
    [
      'index.as.ts',
      ...['--outFile', 'kernel.wasm', '-O3', '--converge', '--noAssert', '--runtime', 'stub', '--use', 'abort='],
      ...['--enable', 'simd', '--enable', 'bulk-memory', '--initialMemory', `${pages}`, '--maximumMemory', `${pages}`],
    ],
    {
      readFile: (name) => {
        const path = join(folder, name)
        return existsSync(path) ? readFileSync(path, 'utf8') : null
      },
      writeFile: (_, content) => {
        if (typeof content !== 'string') code = content
      },
      listFiles: () => [],
    },
  )
  if (error !== null || code === undefined)
    throw new Error(`The kernel of ${folder} does not compile: ${error?.message}\n${stderr}`)
  const lines =
    Buffer.from(code)
      .toString('base64')
      .match(/.{1,120}/g) ?? []
  return [
    `// Written by \`npm run generate\` from the files in ${basename(folder)}/.`,
    '',
    `export const ${name} = [`,
    ...lines.map((line) => `  '${line}',`),
    "].join('')",
    '',
  ].join('\n')
}
