// Function `parse_user_agent`.

import type { ValueObject } from '../../event/value.ts'
import { type KnownAgent, knownAgent, type MatchedAgent, matchedAgent } from '../../formats/user-agent.ts'
import { defineFunction } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'

const text = kinds.string.or(kinds.null)
const mostKnown = 1000

const plainKind = kinds.objectOf({
  browser: kinds.objectOf({ family: text, version: text }),
  os: kinds.objectOf({ family: text, version: text }),
  device: kinds.objectOf({ category: text }),
})
const enrichedKind = kinds.objectOf({
  browser: kinds.objectOf({ family: text, version: text, major: text, minor: text, patch: text }),
  os: kinds.objectOf({ family: text, version: text, major: text, minor: text, patch: text, patch_minor: text }),
  device: kinds.objectOf({ category: text, family: text, brand: text, model: text }),
})

export const parseUserAgent = defineFunction({
  name: 'parse_user_agent',
  category: 'Parse',
  summary: 'Tells browser, system and device from the text of a user agent.',
  description:
    'Mode `fast` asks a small data set. `reliable` asks a large one too where the small one knows nothing. `enriched` prefers the large one, and gives versions in parts and the model of the device. What is not known is null.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The user agent.' },
    {
      name: 'mode',
      kind: kinds.string,
      required: false,
      default: 'fast',
      enum: ['fast', 'reliable', 'enriched'],
      description: 'Which data sets are asked.',
    },
  ],
  returns: (call): Kind => (call.constant('mode') === 'enriched' ? enrichedKind : plainKind),
  fallible: 'never',
  pure: true,
  examples: [
    {
      source: 'parse_user_agent("Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0")',
      result:
        '{ "browser": { "family": "Firefox", "version": "120.0" }, "device": { "category": "pc" }, "os": { "family": "Linux", "version": null } }',
    },
    {
      source: 'parse_user_agent("curl/8.5.0", mode: "reliable").browser',
      result: '{ "family": "HTTP Library", "version": "curl" }',
    },
    {
      source:
        'parse_user_agent("Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.1 Mobile/15E148 Safari/604.1", mode: "enriched").device',
      result: '{ "brand": "Apple", "category": "smartphone", "family": "iPhone", "model": "iPhone" }',
    },
  ],
  compile(call) {
    const mode = call.constant('mode')
    const shaped = mode === 'enriched' ? enriched : mode === 'reliable' ? reliable : fast
    // A few user agents make most of a log.
    const known = new Map<string, ValueObject>()
    return (agent: string) => {
      const before = known.get(agent)
      if (before !== undefined) return before
      const result = shaped(agent)
      if (known.size >= mostKnown) known.clear()
      known.set(agent, result)
      return result
    }
  },
})

function fast(agent: string): ValueObject {
  return plain(knownAgent(agent))
}

function reliable(agent: string): ValueObject {
  const known = knownAgent(agent)
  if (known.browser !== null && known.browserVersion !== null && known.os !== null && known.osVersion !== null) {
    return plain(known)
  }
  const matched = matchedAgent(agent)
  return plain({
    browser: known.browser ?? nameOf(matched.browser),
    browserVersion: known.browserVersion ?? versionOf(matched.browser),
    os: known.os ?? nameOf(matched.os),
    osVersion: known.osVersion ?? versionOf(matched.os),
    category: known.category,
  })
}

function plain(known: KnownAgent): ValueObject {
  return {
    browser: { family: known.browser, version: known.browserVersion },
    device: { category: known.category },
    os: { family: known.os, version: known.osVersion },
  }
}

function enriched(agent: string): ValueObject {
  const known = knownAgent(agent)
  const { browser, os, device } = matchedAgent(agent)
  return {
    browser: {
      family: nameOf(browser) ?? known.browser,
      version: versionOf(browser) ?? known.browserVersion,
      major: browser[1] ?? null,
      minor: browser[2] ?? null,
      patch: browser[3] ?? null,
    },
    device: {
      category: known.category,
      family: nameOf(device),
      brand: device[1] ?? null,
      model: device[2] ?? null,
    },
    os: {
      family: nameOf(os) ?? known.os,
      version: versionOf(os) ?? known.osVersion,
      major: os[1] ?? null,
      minor: os[2] ?? null,
      patch: os[3] ?? null,
      patch_minor: os[4] ?? null,
    },
  }
}

type Parts = MatchedAgent['browser']

function nameOf(parts: Parts): string | null {
  return parts[0] ?? null
}

/** The version as far as its parts are known. */
function versionOf(parts: Parts): string | null {
  const known = parts.slice(1)
  const end = known.indexOf(null)
  const version = (end < 0 ? known : known.slice(0, end)).join('.')
  return version === '' ? null : version
}
