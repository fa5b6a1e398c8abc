// Compiles the kernels of the byte lane and of deflate from AssemblyScript to WebAssembly, as modules with base64 code.

import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

export interface KernelSource {
  /** The folder of the sources; the entry is `index.as.ts`. */
  readonly folder: string
  /** Number of 64 KiB pages. The memory never grows, so views of it stay valid. */
  readonly pages: number
  /** The exports of the module. */
  readonly name: string
}

/** Declared here, because the compiler's own types would add AssemblyScript's globals to all files, where `console` has fewer members. */
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

/** The content of the module with the code of a kernel. */
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
