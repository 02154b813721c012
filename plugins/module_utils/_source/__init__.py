# Copyright (c) 2026 the llmfleet engineers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Structural edits of Python source: PRIVATE to the collection, may change at any time.

Locate with the standard library's ast, splice text at the offsets, keep every other byte. No Ansible
import anywhere in this package; `engine.run` is the way in, `python3 plugins/module_utils/_source/edit.py` the
command line.
"""
