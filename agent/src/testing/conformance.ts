// `npm run conformance -- remap|wire DIR [--only STEM,…]`: runs recorded cases and tells which fail.
// The last line is `N passed, N failed`; the exit code is 1 when any failed.

interface Runner {
  run(dir: string, only: string[] | undefined): Promise<{ passed: number; failed: number }>
}

const usage = 'Usage: npm run conformance -- remap|wire DIR [--only STEM,…]'

async function main(argv: readonly string[]): Promise<number> {
  const [kind, ...rest] = argv
  let dir: string | undefined
  let only: string[] | undefined
  for (let index = 0; index < rest.length; index++) {
    const argument = rest[index] as string
    if (argument === '--only') only = rest[++index]?.split(',')
    else if (argument.startsWith('--only=')) only = argument.slice('--only='.length).split(',')
    else dir = argument
  }
  if ((kind !== 'remap' && kind !== 'wire') || dir === undefined) {
    process.stderr.write(`${usage}\n`)
    return 2
  }
  const runner = (await import(kind === 'remap' ? './conformance/remap.ts' : './conformance/wire.ts')) as Runner
  const { passed, failed } = await runner.run(dir, only)
  process.stdout.write(`${passed} passed, ${failed} failed\n`)
  return failed > 0 ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
