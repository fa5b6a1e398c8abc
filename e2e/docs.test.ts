// The documentation: links between its pages, and the site that `npm run docs` builds from them.

import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { anchorOf } from './documents.ts'

const root = join(import.meta.dirname, '..')
const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(root, path)))
const pages = tracked.filter(
  (path) => path.endsWith('.md') && !/\/src\/(?:testing|schema\/testdata)\/|^e2e\/conformance\//.test(path),
)

const withoutCode = (text: string) => text.replace(/^( *)```.*?^\1```$/gms, '').replace(/`[^`\n]*`/g, '``')

/** The anchors of a page: those derived from headings, and explicit ones. */
function anchorsOf(path: string): ReadonlySet<string> {
  const text = readFileSync(join(root, path), 'utf8')
  const outside = text.replace(/^( *)```.*?^\1```$/gms, '')
  const headings = [...outside.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) => anchorOf(title))
  return new Set([...headings, ...[...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id = '']) => id)])
}

test('all links of pages point to existing files, folders and anchors of the repository', () => {
  const links = pages.flatMap((page) =>
    [...withoutCode(readFileSync(join(root, page), 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)].map(([, href = '']) => ({
      page,
      href,
    })),
  )
  const inside = links.filter(({ href }) => !/^[a-z]+:/.test(href))
  expect(inside.length).toBeGreaterThan(500)
  const broken = inside.filter(({ page, href }) => {
    const [path = '', anchor] = href.split('#')
    const target = path === '' ? page : join(dirname(page), decodeURI(path))
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).has(anchor)
  })
  expect(broken.map(({ page, href }) => `${page}: ${href}`)).toEqual([])
})

/** Names in instructions that stand for any name, such as `agent/src/sinks/TYPE.ts`. */
const isPlaceholder = (name: string) => /^(?:x|TYPE|NAME)\./.test(basename(name))

test('each source file that a page names exists', () => {
  const named = pages.flatMap((page) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/`([\w./-]+\.ts)`/g)].map(([, name = '']) => ({ page, name })),
  )
  expect(named.length).toBeGreaterThan(100)
  const missing = named.filter(
    ({ name }) => !isPlaceholder(name) && !tracked.some((path) => path === name || path.endsWith(`/${name}`)),
  )
  expect(missing.map(({ page, name }) => `${page}: ${name}`)).toEqual([])
})

test('the changelog begins with the version of the packages', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, first] = /^## (\S+)$/m.exec(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')) ?? []
  expect(first).toBe(version)
})

test('the site has a page per file, and a search', async () => {
  // Copy the pages, so that two runs never write to the same folder.
  const folder = mkdtempSync(join(tmpdir(), 'penstock-docs-'))
  try {
    for (const path of tracked.filter((each) => !each.startsWith('e2e/conformance/')))
      cpSync(join(root, path), join(folder, path))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const vitepress = join(root, 'node_modules/vitepress/bin/vitepress.js')
    await promisify(execFile)(process.execPath, [vitepress, 'build', 'docs'], { cwd: folder, maxBuffer: 1 << 24 })
    const site = join(folder, 'docs/.vitepress/dist')
    const missing = pages
      .filter((page) => !page.startsWith('.ci/'))
      .map((page) => page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html'))
      .filter((page) => !existsSync(join(site, page)))
    expect(missing).toEqual([])
    const guide = readFileSync(join(site, 'operator/guide/index.html'), 'utf8')
    expect(guide).toContain('href="/operator/guide/troubleshooting"')
    expect(guide).toContain('VPNavBarSearch')
    // The site lists pages by title.
    expect(guide).toContain('>Many teams, one cluster<')
    expect(guide).not.toMatch(/>[\w-]+\.md</)
  } finally {
    rmSync(folder, { recursive: true })
  }
}, 600_000)
